"""How does a program let Python write into its buffers?  (``jax.experimental.buffer_callback``)

One equation, as a pure callback is; but XLA hands over the memory of operands and results itself,
so nothing is copied, and the Python function fills the results in place.

Read before: ``effects.callbacks``, ``effects.foreign_calls``.
Invariant: operands are read, results written; the engine sees a function from arrays to arrays.
Source: the documentation of jax.experimental.buffer_callback.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from saem.compile import dispatch
from saem.core import dtypes, errors, tree
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import Primitive, absent, primitive
from saem.core.trace import bind, current, eval_trace
from saem.effects.callbacks import batch_by_method, check_vmap_method, refuse
from saem.effects.foreign_calls import SIDE_EFFECT, aliases, checked_aliases
from saem.effects.host_calls import host_call_numbers, layout, name_of


class BufferCall:
    """The Python function of one equation: called with XLA's context and all buffers."""

    __slots__ = ("prim", "number", "__weakref__")

    def __init__(self, prim: BufferCallback):
        self.number = next(host_call_numbers)
        self.prim = prim

    def __call__(self, context: Any, *buffers: Any) -> None:
        prim = self.prim
        count = prim.in_tree.num_leaves
        args, kwargs = prim.in_tree.unflatten(buffers[:count])
        with current(eval_trace):
            prim.callback(context, prim.out_tree.unflatten(buffers[count:]), *args, **kwargs)


_calls: weakref.WeakValueDictionary[Any, BufferCall] = weakref.WeakValueDictionary()


@primitive("buffer_callback")
class BufferCallback(Primitive):
    """Results that a Python function writes into XLA's memory."""

    callback: Callable
    command_buffer_compatible: bool
    has_side_effect: bool
    in_tree: Any
    input_output_aliases: tuple[tuple[int, int], ...]
    out_tree: Any
    result_avals: tuple[ShapedArray, ...]
    vmap_method: str | None

    multiple_results = True

    @property
    def effects(self):
        return frozenset({SIDE_EFFECT}) if self.has_side_effect else frozenset()

    def printed_params(self):
        return {**super().printed_params(), "callback": repr(self.callback)}

    def typing(self, *avals):
        return list(self.result_avals)

    def evaluate(self, *xs):
        # The function takes XLA's buffers: there is no other way to call it.
        return [np.asarray(x) for x in dispatch.apply_primitive(self, xs)]

    def lower(self, ctx, *xs):
        platform = ctx.module.platform
        if platform not in ("cpu", "cuda"):
            raise ValueError(f"`buffer_callback` not supported on {platform} backend. Use "
                             "jax.pure_callback.")
        index = ctx.module.callback(_calls.setdefault(self, BufferCall(self)))
        kind = "cpu" if platform == "cpu" else (
            "gpu" + "_cmd_buffer" * self.command_buffer_compatible)
        layouts = [layout(a) for a in (*ctx.in_avals, *self.result_avals)]
        attributes = {"api_version": "4 : i32", "backend_config": f"{{index = {index} : ui64}}",
                      **({"has_side_effect": "true"} if self.has_side_effect else {}),
                      "operand_layouts": f"[{', '.join(layouts[:len(xs)])}]",
                      "result_layouts": f"[{', '.join(layouts[len(xs):])}]",
                      **aliases(self.input_output_aliases, len(self.result_avals))}
        return ctx.emit_many(
            f"stablehlo.custom_call @xla_buffer_python_{kind}_callback({', '.join(xs)})", *xs,
            outs=self.result_avals, attributes=attributes)

    jvp = refuse(errors.ArgumentError, "buffer_callback.jvp",
                 "Buffer callbacks do not support JVP. Please use `jax.custom_jvp` to use "
                 "callbacks while taking gradients.",
                 "The engine cannot see into the Python function: give its derivative yourself.")
    transpose = absent("it is not differentiated, so it is never transposed", ValueError)

    def batch(self, size, xs, dims):
        avals = tuple(a.update(shape=(size, *a.shape)) for a in self.result_avals)
        call = BufferCallback(
            self.callback, self.command_buffer_compatible, self.has_side_effect, self.in_tree,
            self.input_output_aliases, self.out_tree, avals, self.vmap_method)
        return batch_by_method(self, "buffer_callback.C1", size, xs, dims, lambda _: call)


def buffer_callback(callback: Callable[..., None], result_shape_dtypes: Any, *,
                    has_side_effect: bool = False, vmap_method: str | None = None,
                    input_output_aliases: dict[int, int] | None = None,
                    command_buffer_compatible: bool = False) -> Callable[..., Any]:
    """Return the function of arrays whose results ``callback(context, out, *args)`` writes.

    ``out`` has the structure of ``result_shape_dtypes``; its leaves, and those of ``args``, are
    buffers, which NumPy reads and writes: ``np.asarray(out)[...] = np.asarray(x) + 1``.

    Raises: ValueError for an unknown ``vmap_method`` or aliases that do not fit.
    """
    check_vmap_method("buffer_callback.C2", vmap_method)
    wanted, out_tree = tree.flatten(result_shape_dtypes)
    avals = tuple(ShapedArray(r.shape, dtypes.canonicalize(r.dtype)) for r in wanted)

    def wrapped_callback(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree.flatten((args, kwargs))
        aliases = checked_aliases(input_output_aliases, [aval_of(x) for x in leaves], avals)
        return out_tree.unflatten(bind(BufferCallback(
            callback, command_buffer_compatible, has_side_effect, in_tree, aliases, out_tree,
            avals, vmap_method), *leaves))

    wrapped_callback.__name__ = name_of(callback)
    return wrapped_callback
