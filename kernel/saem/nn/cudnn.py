"""How does cuDNN compute attention on NVIDIA's GPUs?

In one kernel, which keeps no weights of all pairs: a backward pass makes them again from the
logsumexp of each query's logits.  XLA knows the kernel by the name of a call, and is given in JSON
what it computes.  Places are axes [B, T, N, H] here, and [B, N, T, H] in its results.

Read before: ``nn.attention``, ``effects.foreign_calls``.
Invariant: results are those of XLA's program to the rounding of 16 bits, on a GPU
(tests/kernel/test_accelerator.py); the texts are those of JAX (tests/kernel/test_attention.py).
Source: cuDNN's documentation of scaled dot product attention; what JAX writes on a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import dtypes, errors
from saem.core.avals import ShapeDtypeStruct
from saem.core.record import Record
from saem.derivatives.custom_vjp import custom_vjp
from saem.derivatives.custom_vmap import custom_vmap
from saem.effects.foreign_calls import ffi_call
from saem.nn.attention import MASKED
from saem.placement import plugins
from saem.transform.derivatives import vjp
from saem.typing import Array

ELEMENTS = {"bfloat16": "BF16", "float16": "F16"}
# Axes of its results in memory, the slowest first: those of [B, T, N, H].
BTNH = (0, 2, 1, 3)


class Attention(Record):
    """What the kernel is given: of which places a query sees keys, and how logits are scaled."""

    scale: float
    mask: str
    window: int
    biased: bool
    shared: bool  # whether all examples share the bias, which has a derivative

    def config(self, element: str, shape: tuple[int, ...], products: dict[str, str]) -> str:
        """Return the JSON for operands of type ``element`` whose logits have ``shape``."""
        listed = ["dim_level_types", "dim_unique", "dim_ordered", "tiles"]
        invalid = "PRIMITIVE_TYPE_INVALID"
        layout = {**{name: [] for name in listed}, "minor_to_major": ["3", "2", "1", "0"],
                  "element_size_in_bits": "0", "memory_space": "0",
                  "index_primitive_type": invalid, "pointer_primitive_type": invalid,
                  "dynamic_shape_metadata_prefix_bytes": "0"}
        algorithm = {"algo_id": "0", "math_type": "TENSOR_OP_MATH",
                     "tuning_knobs": {"17": "1", "24": "0"}, "is_cudnn_frontend": True,
                     "workspace_size": "0"}
        logits = {"element_type": element, "dimensions": [str(n) for n in shape],
                  "tuple_shapes": [], "layout": layout, "is_dynamic_dimension": [False] * 4}
        spec = {"algorithm": algorithm, "fmha_scale": self.scale,
                "intermediate_tensor_shape": logits, "is_flash_attention": True,
                "mask_type": self.mask,
                **{f"{name}_dot_dimension_numbers": contraction(numbers)
                   for name, numbers in products.items()},
                "dropout_rate": 0.0, "seed": 42, "sliding_window_length": self.window,
                "max_seg_per_batch": 1, "is_paged_attention": False}
        return json.dumps({"operation_queue_id": "0", "cudnn_fmha_backend_config": spec})


# The products of a pass, as ``contraction`` reads them: of logits with values, and so on.
FORWARD = {"bmm1": "3,02;3,02", "bmm2": "3,01;1,02"}
BACKWARD = {"bmm1_grad_gemm1": "2,01;1,02", "bmm1_grad_gemm2": "3,01;1,02",
            "bmm2_grad_gemm1": "2,01;1,02", "bmm2_grad_gemm2": "3,02;3,02"}


def contraction(numbers: str) -> dict[str, list[str]]:
    """Return the axes of a product: "3,01;1,02" sums axis 3 of lhs and 1 of rhs over a batch."""
    sides = [side.split(",") for side in numbers.split(";")]
    return {f"{name}_{kind}_dimensions": list(side[place])
            for place, kind in enumerate(("contracting", "batch"))
            for name, side in zip(("lhs", "rhs"), sides)}


def check_cudnn(query: Array, window: tuple[int, int] | None, is_causal: bool) -> None:
    """Raises: RuntimeError without cuDNN; NotImplementedError for what it does not compute."""
    if not plugins.has_cudnn():
        raise errors.explained(
            RuntimeError, "dot_product_attention.cudnn", "cuDNN is not detected.",
            advice="Leave out implementation=: XLA computes the same.")
    if query.dtype.name not in ELEMENTS:
        raise errors.explained(
            NotImplementedError, "dot_product_attention.cudnn.dtype",
            f"cuDNN computes attention of float16 and bfloat16, not of {query.dtype.name}.",
            advice="Convert query, key and value, or leave out implementation=.")
    if window is not None and window[1] and not is_causal:
        raise errors.explained(
            NotImplementedError, "dot_product_attention.cudnn.window",
            f"cuDNN has no window with places to the right, but local_window_size is {window}.",
            advice="Use (left, 0), or leave out implementation=.")


def attention(by_xla: Callable[..., tuple], query: Array, key: Array, value: Array,
              bias: Array | None, *, mask: Array | None, scale: float, is_causal: bool,
              window: tuple[int, int] | None, lengths: tuple[Array | None, Array | None]
              ) -> tuple[Array, Array]:
    """Return the attention [B, T, N, H] and the logsumexp of the logits, f32[B, T, N].

    ``by_xla`` is the same attention, of which the derivative by a bias is taken that not all
    examples share: cuDNN has that of a shared one alone.
    """
    check_cudnn(query, window, is_causal)
    whole = bias_of(bias, mask, (query.shape[2], query.shape[1], key.shape[1]), query.dtype)
    padded = any(x is not None for x in lengths)
    hidden = ["PADDING"] * padded + ["CAUSAL"] * (is_causal or window is not None)
    learned = bias is not None
    shared = learned and whole is not None and whole.shape[0] == 1
    spec = Attention(float(scale), "_".join(hidden) or "NO_MASK",
                     0 if window is None else window[0] + 1, whole is not None, shared)
    places: list[Array] = []
    if padded:
        places = [jnp.full(x.shape[0], x.shape[1], np.int32) if n is None else n
                  for x, n in zip((query, key), lengths)]
    extra = [*([] if whole is None else [whole]), *places]
    as_one = not shared and (whole is None or whole.shape[0] == query.shape[0])

    @custom_vjp
    def attend(*xs: Array) -> list[Array]:
        return over_batches(lambda *xs: forward(spec, *xs), xs, as_one)

    def keep(*xs: Array) -> tuple[list[Array], tuple]:
        outs = attend(*xs)
        return outs, (xs, outs)

    def share(residuals: tuple, cts: list[Array]) -> tuple:
        xs, (out, summed) = residuals
        shares = over_batches(lambda *xs: backward(spec, *xs), (*xs, out, summed, cts[0]), as_one)
        if learned and not shared:
            _, pullback = vjp(lambda bias: by_xla(*xs[:3], bias)[0], xs[3])
            shares += pullback(cts[0])
        return (*shares, *[None] * (len(xs) - len(shares)))

    attend.defvjp(keep, share)
    out, summed = attend(query, key, value, *extra)
    return out, summed.transpose(0, 2, 1)


def over_batches(f: Callable[..., list[Array]], xs: tuple[Array, ...], as_one: bool) -> list[Array]:
    """Return ``f(*xs)``, whose vmap makes one batch of all: of x [A, B, …] comes [A B, …].

    Unless ``as_one`` it calls ``f`` for one batch after the other.
    """
    mapped = custom_vmap(f)

    def rule(size: int, batched: list[bool], *xs: Array) -> tuple[list[Array], list[bool]]:
        rows = [x if there else jnp.broadcast_to(x, (size, *x.shape))
                for x, there in zip(xs, batched)]
        if as_one:
            flat = tuple(x.reshape(-1, *x.shape[2:]) for x in rows)
            outs = [out.reshape(size, -1, *out.shape[1:]) for out in over_batches(f, flat, as_one)]
        else:
            outs = lax.map(lambda xs: f(*xs), rows)
        return outs, [True] * len(outs)

    mapped.def_vmap(rule)
    return list(mapped(*xs))


def forward(spec: Attention, query: Array, key: Array, value: Array, *extra: Array) -> list[Array]:
    """Return the attention [B, T, N, H] and the logsumexp of the logits [B, N, T]."""
    batch, queries, heads, features = query.shape
    outs = [ShapeDtypeStruct((batch, heads, queries, features), query.dtype),
            ShapeDtypeStruct((batch, heads, queries), np.float32)]
    logits = (batch, heads, queries, key.shape[1])
    out, summed = kernel("", spec, FORWARD, logits, outs, query, key, value, *extra)
    return [out.transpose(BTNH), summed]


def backward(spec: Attention, query: Array, key: Array, value: Array, *rest: Array) -> list[Array]:
    """Return the cotangents of query, key and value, and of a bias that all examples share."""
    *extra, out, summed, ct = rest
    kept = [ShapeDtypeStruct((x.shape[0], x.shape[2], x.shape[1], x.shape[3]), x.dtype)
            for x in (query, key, value)]
    bias, places = (extra[:1], extra[1:]) if spec.biased else ([], extra)
    outs = [*kept, *(ShapeDtypeStruct(b.shape, b.dtype) for b in bias if spec.shared)]
    logits = (*kept[0].shape[:3], key.shape[1])
    made = kernel("Backward", spec, BACKWARD, logits, outs, query, key, value, summed,
                  ct.astype(query.dtype), *bias, out, *places)
    return [*(x.transpose(BTNH) for x in made[:3]), *made[3:]]


def kernel(which: str, spec: Attention, products: dict[str, str], logits: tuple[int, ...],
           outs: list[ShapeDtypeStruct], *operands: Array) -> list[Array]:
    """Return the results of cuDNN's call; all but a bias stand in memory as [B, T, N, H]."""
    workspace = ShapeDtypeStruct((0,), np.uint8)
    layouts = [BTNH if len(out.shape) == 4 and place < 3 else None
               for place, out in enumerate(outs)]
    call = ffi_call(
        f"__cudnn$fmha{'ScaleBias' if spec.biased else ''}Softmax{which}", [*outs, workspace],
        output_layouts=[*layouts, None], custom_call_api_version=2,
        legacy_backend_config=spec.config(ELEMENTS[operands[0].dtype.name], logits, products))
    return call(*operands)[:-1]


def bias_of(bias: Array | None, mask: Array | None, shape: tuple[int, ...], dtype: Any
            ) -> Array | None:
    """Return one bias for both, of ``dtype`` and [1 or B, *shape]: very low where nothing is seen.
    """
    if mask is not None:
        unseen = np.asarray(MASKED * float(dtypes.finfo(dtype).max), dtype)[()]
        bias = jnp.where(mask, jnp.zeros((), dtype) if bias is None else bias.astype(dtype), unseen)
    return None if bias is None else jnp.broadcast_to(bias, (bias.shape[0], *shape)).astype(dtype)
