"""Which derivatives of a function are there?

``jvp`` pushes a tangent forward, ``vjp`` pulls a cotangent back, ``linearize`` keeps the linear
map; ``grad`` is the vjp of a scalar.  All work on pytrees and nest in any order.

Read before: ``transform.linearize``.  Read after: ``transform.mapping``.
Invariant: a derivative has the structure, shapes and (tangent) dtypes of its arguments.
Source: the documentation of jax.grad, jax.vjp, jax.jvp and jax.linearize.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from saem.core import dtypes, errors, tree
from saem.core.arguments import (
    as_numbers,
    check_callable,
    distinct_positions,
    documented,
    is_integer,
    wraps,
)
from saem.core.avals import ShapedArray, aval_of
from saem.core.frames import boundary
from saem.core.hi_types import is_high
from saem.core.refs import is_ref
from saem.ops.convert import convert
from saem.ops.linear import varying_as, zeros_of
from saem.transform.jvp import instantiate, jvp_flat
from saem.transform.known_paths import gradient_flat
from saem.transform.linear_maps import as_array, linear_function, pullback, tangent_type
from saem.transform.linearize import Linearized, linearize_flat


def is_differentiable(aval: ShapedArray) -> bool:
    """Return whether values of ``aval`` have tangents."""
    return dtypes.scalar_kind(aval.to_tangent_aval().dtype) != "float0"


class FlatFunction:
    """A function of pytrees as a function of flat lists; keeps the structure of its last result.

    ``rebuild(leaves)`` gives its arguments, positional and by keyword.  With ``has_aux`` the second
    part of what it returns is kept in ``aux``.
    """

    out_tree: Any
    aux_tree: Any

    def __init__(self, fun: Callable, rebuild: Callable[[Sequence[Any]], Sequence[Any]],
                 has_aux: bool = False):
        self.fun = fun
        self.rebuild = rebuild
        self.has_aux = has_aux
        self.aux: list[Any] = []

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = self.rebuild(leaves)
        out = self.fun(*args, **kwargs)
        if self.has_aux:
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                raise TypeError(
                    "expected function with aux output to return a two-element tuple, but got type "
                    f"{type(out)} with value {out!r}")
            out, aux = out
            self.aux[:], self.aux_tree = tree.flatten(aux)
        outs, self.out_tree = tree.flatten(out)
        return outs

    def aux_value(self) -> Any:
        return self.aux_tree.unflatten(self.aux)


def _flat_positional(fun: Callable, args: Sequence[Any], has_aux: bool
                     ) -> tuple[FlatFunction, list, Any]:
    """Return ``fun`` of the leaves of ``args``, these leaves, and the structure of ``args``."""
    leaves, in_tree = tree.flatten(tuple(args))
    return FlatFunction(fun, lambda xs: (in_tree.unflatten(xs), {}), has_aux), leaves, in_tree


@boundary
def jvp(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False):
    """Return ``(fun(*primals), its tangent)``, and aux if ``has_aux``.

    The tangent says how fast the result changes when the primals move along ``tangents``.

    Raises: TypeError if primals and tangents do not have one structure, shapes and tangent dtypes.

    >>> jax.jvp(lambda x: x ** 2, (3.,), (1.,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}.")
    flat, xs, _ = _flat_positional(fun, primals, has_aux)
    in_tree = tree.structure(primals)
    dxs, tangent_tree = tree.flatten(tangents)
    if in_tree != tangent_tree:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals "
            f"have tree structure {in_tree} whereas tangents have tree structure {tangent_tree}.")
    dxs = [_as_tangent(aval_of(x), dx) for x, dx in zip(xs, dxs)]
    outs, out_tangents = jvp_flat(flat, xs, dxs, aux=flat.aux)
    result = (flat.out_tree.unflatten(outs),
              flat.out_tree.unflatten([as_array(instantiate(t, x)) if t is None else t
                                       for t, x in zip(out_tangents, outs)]))
    return (*result, flat.aux_value()) if has_aux else result


def _as_tangent(aval: ShapedArray, tangent: Any) -> Any:
    """Return the tangent of a primal of type ``aval``, which varies and is weak as that is.

    It is None for an integer's.

    Raises: TypeError for another dtype; ValueError for another shape.
    """
    wanted, got = aval.to_tangent_aval(), tangent_type(tangent)
    if got.dtype != wanted.dtype:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in "
            "case of int/bool primal dtype the tangent dtype must be float0.Got primal dtype "
            f"{aval.dtype.name} and so expected tangent dtype {wanted.dtype}, but got tangent "
            f"dtype {got.dtype} instead.")
    if got.shape != wanted.shape:
        raise ValueError(
            f"jvp called with different primal and tangent shapes;Got primal shape {aval.shape} "
            f"and tangent shape as {got.shape}. A tangent has the shape of its primal.")
    if not is_differentiable(aval):
        return None
    if is_ref(aval):
        return tangent
    as_weak = aval_of(tangent).weak_type == aval.weak_type
    return varying_as(tangent if as_weak else convert(tangent, aval.dtype, aval.weak_type), aval)


@boundary
def linearize(fun: Callable, *primals: Any, has_aux: bool = False):
    """Return ``(fun(*primals), linear_map)``; the map takes tangents like primals.

    >>> out, f_jvp = jax.linearize(lambda x: x ** 2, 3.)
    >>> out, f_jvp(1.)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    flat, xs, in_tree = _flat_positional(fun, primals, has_aux)
    outs, linear = _linearize(flat, xs)
    out_tree = flat.out_tree
    push = linear_function(linear, in_tree, out_tree)
    out = out_tree.unflatten(outs)
    return (out, push, flat.aux_value()) if has_aux else (out, push)


def _linearize(flat: FlatFunction, xs: Sequence[Any]) -> tuple[list[Any], Linearized]:
    return linearize_flat(flat, xs, [is_differentiable(aval_of(x)) for x in xs], flat.aux)


@boundary
def vjp(fun: Callable, *primals: Any, has_aux: bool = False, reduce_axes: Sequence = ()):
    """Return ``(fun(*primals), pullback)``; the pullback takes a cotangent like the output.

    It returns one cotangent for each primal: how fast the output, weighted by the cotangent that
    came, changes with that primal.

    Raises: NotImplementedError for ``reduce_axes``, which JAX has withdrawn too.

    >>> out, f_vjp = jax.vjp(lambda x: x ** 2, 3.)
    >>> out, f_vjp(1.)
    (Array(9., dtype=float32, weak_type=True), (Array(6., dtype=float32, weak_type=True),))
    """
    check_callable(fun)
    if reduce_axes:
        raise NotImplementedError(
            "reduce_axes argument to vjp is deprecated. Sum over the axis yourself with lax.psum.")
    flat, xs, in_tree = _flat_positional(fun, primals, has_aux)
    xs = [as_array(x) for x in xs]
    outs, linear = _linearize(flat, xs)
    out = flat.out_tree.unflatten([as_array(x) for x in outs])
    pull = pullback(linear, in_tree, flat.out_tree, xs)
    return (out, pull, flat.aux_value()) if has_aux else (out, pull)


def value_and_grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False,
                   reduce_axes: Sequence = ()) -> Callable:
    """Return the function that computes ``fun`` and its gradient in arguments ``argnums``.

    With ``has_aux``, ``fun`` returns (number, aux), and the result is ((number, aux), gradient).

    Raises: TypeError when called, if the output is not a real scalar (complex if ``holomorphic``).

    >>> jax.value_and_grad(lambda x: x ** 3)(2.)
    (Array(8., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
    """
    both = _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    return documented(wraps(fun, "value_and_grad")(boundary(both)), fun,
                      f"Return {{0}} and its gradient with respect to argument {argnums}.")


def _value_and_grad(fun: Callable, argnums: int | Sequence[int], has_aux: bool,
                    holomorphic: bool, allow_int: bool, reduce_axes: Sequence) -> Callable:
    """Return what ``value_and_grad`` does, without the name and signature of ``fun``."""
    check_callable(fun)
    if reduce_axes:
        raise NotImplementedError(
            "reduce_axes argument to grad is deprecated. Sum over the axis yourself with lax.psum.")
    single = is_integer(argnums)
    numbers = as_numbers(argnums)
    if not numbers:
        raise ValueError("grad needs an argument to differentiate in, but argnums is empty.")

    path_key = getattr(fun, "__code__", type(fun)), numbers

    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        places = places_of(numbers, len(args))
        chosen = tuple([args[i] for i in places])
        xs, in_tree = tree.flatten(chosen)
        moving = [_check_input(x, holomorphic, allow_int) for x in xs]

        def rebuild(leaves: Sequence[Any]) -> tuple[list, dict]:
            full = list(args)
            for i, value in zip(places, in_tree.unflatten(leaves)):
                full[i] = value
            return full, kwargs

        flat = FlatFunction(fun, rebuild, has_aux)
        xs = [as_array(x) for x in xs]
        outs, gradients = gradient_flat(flat, xs, moving, flat.aux, path_key)
        _check_scalar(flat, outs, holomorphic)
        grads = in_tree.unflatten(
            [as_array(zeros_of(aval_of(x).to_ct_aval()) if ct is None else ct)
             for x, ct in zip(xs, gradients())])
        value = as_array(outs[0])
        return ((value, flat.aux_value()) if has_aux else value,
                grads[0] if single else grads)

    return value_and_grad_f


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence = ()
         ) -> Callable:
    """Return the function that computes the gradient of ``fun``, whose result is one number.

    The gradient has the structure of the argument ``argnums``; of several (``argnums=(0, 1)``) it
    is a tuple.  With ``has_aux``, ``fun`` returns (number, aux), and its gradient (gradient, aux).
    Complex functions need ``holomorphic``, integer arguments ``allow_int``.

    Raises: as ``value_and_grad``, which gives the value of ``fun``, too.

    >>> jax.grad(lambda x: x ** 3)(2.)
    Array(12., dtype=float32, weak_type=True)
    >>> jax.grad(lambda x, y: jnp.sum(x * y), (0, 1))(jnp.array([1., 2.]), jnp.array([3., 4.]))
    (Array([3., 4.], dtype=float32), Array([1., 2.], dtype=float32))
    """
    both = _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @wraps(fun, "grad")
    @boundary
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return documented(grad_f, fun,
                      f"Return the gradient of {{0}} with respect to argument {argnums}.")


def places_of(numbers: tuple[int, ...], count: int) -> list[int]:
    """Return ``argnums`` counted from the front of ``count`` arguments.

    Raises: TypeError or ValueError for one that the call does not have.
    """
    if len(numbers) == 1 and 0 <= numbers[0] < count:  # most often
        return [numbers[0]]
    if any(n >= count for n in numbers):
        named = numbers[0] if len(numbers) == 1 else numbers
        raise TypeError(
            f"differentiating with respect to argnums={named} requires at least "
            f"{max(numbers) + 1} positional arguments to be passed by the caller, but got only "
            f"{count} positional arguments.")
    return distinct_positions(numbers, count)


def _check_input(x: Any, holomorphic: bool, allow_int: bool) -> bool:
    """Return whether ``x`` has tangents; refuse what ``grad`` may not differentiate in."""
    try:
        aval = aval_of(x)
    except TypeError:
        raise TypeError(
            f"Argument '{x}' of type {type(x)} is not a valid JAX type: grad differentiates in "
            "arrays and numbers. Use argnums to choose other arguments.") from None
    if is_ref(aval):
        raise errors.explained(
            errors.ArgumentError, "grad.C8",
            f"Expected cotangent type {aval.to_tangent_aval()} but got "
            f"{aval.inner_aval.str_short()}: "
            "grad differentiates in arrays, not in references.",
            advice="Pass what it holds, ref[...]; or use argnums to choose other arguments.")
    dtype = aval.dtype
    kind = dtypes.scalar_kind(dtype)
    if holomorphic and kind != "complex":
        raise errors.explained(
            errors.ArgumentTypeError, "grad.C1",
            "grad with holomorphic=True requires inputs with complex dtype, but got "
            f"{dtype.name}.", advice="Convert the input: x.astype(complex).")
    if kind in ("int", "uint", "bool", "extended") and not (allow_int or is_high(aval)):
        raise errors.explained(
            errors.ArgumentTypeError, "grad.C2",
            "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {dtype.name}.",
            advice="If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int "
            "to True; else write the number with a point (3. instead of 3) or use x.astype(float).")
    return kind in ("float", "complex") or is_differentiable(aval)


def _check_scalar(flat: FlatFunction, outs: Sequence[Any], holomorphic: bool) -> None:
    """Refuse a function that does not return one scalar of a differentiable dtype."""
    if len(outs) != 1 or not tree.treedef_is_leaf(flat.out_tree):
        raise errors.explained(
            errors.ArgumentTypeError, "grad.C3",
            "Gradient only defined for scalar-output functions. Output was "
            f"{flat.out_tree.unflatten([repr_of(x) for x in outs])}.",
            advice="Return one number. To return more beside it, use has_aux=True and return "
            "(loss, more).")
    aval = aval_of(outs[0])
    if aval.shape:
        raise errors.explained(
            errors.ArgumentTypeError, "grad.C4",
            "Gradient only defined for scalar-output functions. Output had shape: "
            f"{aval.shape}.",
            advice="Sum it first, as in grad(lambda x: f(x).sum()); or use jacrev or vjp for all "
            "derivatives.")
    if holomorphic or dtypes.scalar_kind(aval.dtype) != "float":
        _check_output_dtype(aval.dtype, holomorphic)


def _check_output_dtype(dtype: Any, holomorphic: bool) -> None:
    """Refuse a result of a dtype that is not real (complex if ``holomorphic``)."""
    kind = dtypes.scalar_kind(dtype)
    if holomorphic:
        if kind != "complex":
            raise errors.explained(
                errors.ArgumentTypeError, "grad.C5",
                "grad with holomorphic=True requires outputs with complex dtype, but got "
                f"{dtype.name}.")
    elif kind == "complex":
        raise errors.explained(
            errors.ArgumentTypeError, "grad.C6",
            "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), "
            f"but got {dtype.name}.",
            advice="For holomorphic differentiation, pass holomorphic=True. For differentiation of "
            "non-holomorphic functions involving complex outputs, use jax.vjp directly.")
    elif kind != "float":
        raise errors.explained(
            errors.ArgumentTypeError, "grad.C7",
            "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), "
            f"but got {dtype.name}.",
            advice="For differentiation of functions with integer outputs, use jax.vjp directly.")


def repr_of(x: Any) -> Any:
    """Return how a message shows an output: its type, not its numbers."""
    try:
        return aval_of(x)
    except TypeError:
        return x
