"""How does a program call LAPACK on a CPU, cuSOLVER or hipSOLVER on a GPU, and XLA on a TPU?

By a custom call that names the routine: ``@lapack_spotrf_ffi`` is the Cholesky decomposition in
single precision.  These routines read matrices column by column, work on all matrices of a stack,
and return beside their results a number that is 0 where they succeeded.

Read before: ``compile.text``.  Read after: ``linalg.families``.
Invariant: where a routine failed, its results are NaN.
Source: the LAPACK Users' Guide (routine names, arguments); StableHLO specification, custom_call;
what JAX writes for these routines (jax.export).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.compile.libraries import libraries_of
from saem.compile.operations import FRONTEND, Attribute
from saem.compile.text import strong_aval
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray
from saem.core.dimensions import is_static

I32 = np.dtype("int32")
PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# Routines whose name for complex numbers is another: orthogonal ones are then unitary.
COMPLEX_NAMES = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}
GPU = ("cuda", "gpu", "rocm")


def on_gpu(ctx: Any) -> bool:
    return ctx.module.platform in GPU


def on_tpu(ctx: Any) -> bool:
    return ctx.module.platform == "tpu"


def target_on(platform: str, target: str) -> str:
    """Return the target that is called ``target`` with CUDA: ``cusolver_…`` is ``hipsolver_…``."""
    return f"hip{target[2:]}" if platform == "rocm" and target.startswith("cu") else target


def lapack(routine: str, dtype: Any) -> str:
    """Return the target that calls LAPACK's ``routine`` for numbers of ``dtype``.

    Raises: NotImplementedError for a dtype that LAPACK does not have.
    """
    prefix = PREFIX.get(dtype.name)
    if prefix is None:
        raise errors.explained(
            NotImplementedError, f"{routine}.dtype", f"Unsupported dtype {dtype.name}.",
            advice="LAPACK has float32, float64, complex64 and complex128: convert first, "
            "x.astype(jnp.float32).")
    name = COMPLEX_NAMES.get(routine, routine) if dtypes.is_complex(dtype) else routine
    return f"lapack_{prefix}{name}_ffi"


def refuse_platform(ctx: Any, name: str) -> Exception:
    """Return the error that ``name`` has no routine for the platform of ``ctx``."""
    return errors.explained(
        NotImplementedError, f"{name}.platform",
        f"MLIR translation rule for primitive '{name}' not found for platform "
        f"{ctx.module.platform}", advice="Compute it on a CPU: jax.jit(f, backend='cpu').")


def character(letter: str) -> str:
    """Return a letter as routines take it: ``76 : ui8`` for L."""
    return f"{ord(letter)} : ui8"


def layout(aval: ShapedArray, leading: int) -> str:
    """Return the layout by which matrices after ``leading`` axes stand column by column."""
    order = [*range(aval.ndim)][::-1]
    if aval.ndim - leading == 2:
        order[:2] = order[1::-1]
    return f"dense<{order}> : tensor<{len(order)}xindex>"


def custom_call(ctx: Any, target: str, operands: Sequence[str], outs: Sequence[ShapedArray], *,
                leading: int, config: dict[str, str] | None = None,
                reuse: dict[int, int] | None = None) -> list[str]:
    """Write a call of ``target`` on stacks of matrices and return its results.

    ``target``: on GPUs its name with CUDA.  ``leading``: the number of axes that count matrices.
    ``config``: attributes of the routine.  ``reuse``: which result takes over the memory of which
    operand.
    """
    config, reuse = config or {}, reuse or {}
    target = target_on(ctx.module.platform, target)
    ctx.module.libraries |= libraries_of([target])
    avals = [ctx.avals[x] for x in operands]
    shown = ", ".join(f"{name} = {value}" for name, value in config.items())
    attributes: dict[str, Attribute] = {
        "api_version": "4 : i32", "backend_config": f"{{{shown}}}",
        FRONTEND: {"num_batch_dims": str(leading)},
        "operand_layouts": f"[{', '.join(layout(a, leading) for a in avals)}]",
        "result_layouts": f"[{', '.join(layout(a, leading) for a in outs)}]",
    }
    sizes = open_sizes(ctx, len(operands), outs, attributes)
    if sizes:
        given = [layout(a, leading) for a in avals] + ["dense<[0]> : tensor<1xindex>"] * len(sizes)
        attributes["operand_layouts"] = f"[{', '.join(given)}]"
        operands, reuse = [*operands, *sizes], {}
        avals = [ctx.avals[x] for x in operands]
    if reuse:
        pairs = ", ".join(
            "#stablehlo.output_operand_alias<output_tuple_indices = "
            f"[{out if len(outs) > 1 else ''}], operand_index = {operand}, "
            "operand_tuple_indices = []>" for out, operand in reuse.items())
        attributes["output_operand_aliases"] = f"[{pairs}]"
    if ctx.module.devices:
        attributes["sdy.sharding_rule"] = partitioning(avals, outs, leading)
    return ctx.emit_many(f"stablehlo.custom_call @{target}({', '.join(operands)})", *operands,
                         outs=outs, attributes=attributes)


def open_sizes(ctx: Any, count: int, outs: Sequence[ShapedArray], attributes: dict[str, Attribute]
               ) -> list[str]:
    """Return the shapes of ``outs``, if any is open: operands of a call behind ``count`` others.

    They are entered in the ``attributes`` of the call.
    """
    if ctx.module.sizes is None or all(is_static(a.shape) for a in outs):
        return []
    places = [*range(count, count + len(outs))]
    attributes["indices_of_shape_operands"] = f"dense<{places}> : tensor<{len(outs)}xi64>"
    return [ctx.vector(out.shape, np.dtype("int64")) for out in outs]


def xla_call(ctx: Any, target: str, operands: Sequence[str], outs: Sequence[ShapedArray],
             config: str = "") -> list[str]:
    """Write a call of XLA's own routine ``target``, of which a TPU has some."""
    attributes: dict[str, Attribute] = {"backend_config": f'"{config}"'} if config else {}
    operands = [*operands, *open_sizes(ctx, len(operands), outs, attributes)]
    return ctx.emit_many(f"stablehlo.custom_call @{target}({', '.join(operands)})", *operands,
                         outs=outs, attributes=attributes)


def partitioning(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], leading: int) -> str:
    """Return the rule for the partitioner: leading axes may be sharded, the others not."""
    sizes: dict[str, int] = {}

    def axes(aval: ShapedArray) -> str:
        names = [f"b{i}" if i < leading else f"n{len(sizes)}_{i}" for i in range(aval.ndim)]
        sizes.update(zip(names, aval.shape))
        return "[" + ", ".join(letters(name) for name in names) + "]"

    found: dict[str, str] = {}

    def letters(name: str) -> str:
        if name not in found:
            number = len(found)
            found[name] = chr(ord("i") + number) if number < 18 else f"z_{number - 17}"
        return found[name]

    left = ", ".join(map(axes, avals))
    right = ", ".join(map(axes, outs))
    shown = ", ".join(f"{found[name]}={size}" for name, size in sizes.items())
    return f"#sdy.op_sharding_rule<({left})->({right}) {{{shown}}}, custom>"


def status(shape: Sequence[int]) -> ShapedArray:
    """Return the aval of the numbers by which a routine reports success."""
    return strong_aval(tuple(shape), I32)


def nan_unless(ctx: Any, info: str, xs: Sequence[str], direction: str = "EQ") -> list[str]:
    """Write ``xs`` with NaN for each matrix whose ``info`` is not 0 (or not GE 0)."""
    shape = ctx.avals[info].shape
    fine = ctx.compare(direction, info, ctx.constant(0, strong_aval((), I32)))
    outs = []
    for x in xs:
        aval = ctx.avals[x]
        nan = complex(np.nan, np.nan) if dtypes.is_complex(aval.dtype) else np.nan
        which = ctx.broadcast(fine, aval.shape, range(len(shape)))
        outs.append(ctx.choose(which, x, ctx.constant(nan, aval)))
    return outs


def identities(ctx: Any, avals: Sequence[ShapedArray]) -> list[str]:
    """Write the results for matrices without elements: identities, and nothing."""
    outs = []
    for aval in avals:
        value = np.eye(*aval.shape[-2:]) if aval.ndim > 1 else 0
        outs.append(ctx.constant(np.broadcast_to(value, aval.shape), aval))
    return outs


def masked(ctx: Any, x: str, keep: str, k: int = 0) -> str:
    """Write ``x`` with zeros outside the ``keep`` ("lower" or "upper") triangle of diagonal k."""
    aval = ctx.avals[x]
    counts = strong_aval(aval.shape, I32)
    rows, columns = ctx.iota(aval.ndim - 2, counts), ctx.iota(aval.ndim - 1, counts)
    if k:
        rows = ctx.elementwise("stablehlo.add", rows, ctx.constant(k, counts), out=counts)
    which = ctx.compare("GE" if keep == "lower" else "LE", rows, columns)
    return ctx.choose(which, x, ctx.constant(0, aval))


def transposed(ctx: Any, x: str, *, conjugated: bool = False) -> str:
    """Write the (conjugate) transposes of the matrices ``x``."""
    aval = ctx.avals[x]
    rank = aval.ndim
    order = [*range(rank - 2), rank - 1, rank - 2]
    shape = (*aval.shape[:-2], aval.shape[-1], aval.shape[-2])
    out = ctx.emit(f"stablehlo.transpose {x}, dims = {order}", x,
                   out=strong_aval(shape, aval.dtype))
    return conjugate(ctx, out) if conjugated else out


def conjugate(ctx: Any, x: str) -> str:
    """Write the complex conjugate of ``x``; ``x`` itself if it is real."""
    aval = ctx.avals[x]
    if not dtypes.is_complex(aval.dtype):
        return x
    part = strong_aval(aval.shape, dtypes.real_dtype(aval.dtype))
    real, imag = (ctx.emit(f"stablehlo.{op} {x}", x, out=part) for op in ("real", "imag"))
    minus = ctx.elementwise("stablehlo.negate", imag, out=part)
    return ctx.emit(f"stablehlo.complex {real}, {minus}", real, minus, out=aval)
