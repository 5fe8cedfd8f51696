"""Do types say how values lie along Explicit mesh axes, as JAX's types do?

Types of results, printed programs, values, shardings of results and refusals of first-order
operations, each compared with JAX.  Eight CPU devices on both sides.

Invariant: every expected answer comes from JAX (``explicit.py``), but where a test says otherwise.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from explicit import agree

import saem as jax
import saem.numpy as jnp
from saem.core.sharded import ShardingTypeError
from saem.sharding import AxisType, NamedSharding
from saem.sharding import PartitionSpec as P

pytestmark = pytest.mark.usefixtures("little_effort")

I = "D((8,), 'x', dtype=np.int32)"

GROUPS = {
    "sharded indices leave it open who reads": [f"T(lambda a, i: {op}, {a}, {i})" for op, a, i in [
        ("a[i]", "rep", I), ("a[i]", "xc", I), ("a[i]", "v", "D((8,), dtype=np.int32)"),
        ("jnp.take(a, i, axis=0)", "rep", I), ("a[i, i]", "A((8, 8))", I),
        ("a.at[i].get(out_sharding=P('x'))", "rep", I), ("a.at[i].set(0.)", "rep", I),
        ("a.at[i].add(1.)", "rep", I), ("a.at[i].add(1., out_sharding=P())", "rep", I),
        ("jnp.take_along_axis(a, i, 1)", "xr", "D((8, 4), 'x', dtype=np.int32)"),
        ("jnp.take_along_axis(a, i, 0)", "rep", "D((8, 1), 'x', dtype=np.int32)"),
        ("jax.ops.segment_sum(a, i, 4)", "A((8,))", I), ("jnp.bincount(i, length=3)", "rep", I)]],
    "quantiles of rows": [
        "V(jnp.quantile(xr, 0.3, axis=1), jnp.quantile(xc, 0.3, axis=0), jnp.median(xr, axis=1))",
        "V(jnp.quantile(xr, jnp.array([0.2, 0.7]), axis=1), jnp.median(xc, axis=0, keepdims=True))",
        "V(jnp.percentile(xr, 30, axis=-1, method='lower'))",
        "V(jnp.quantile(xr, 0.3, axis=1, method='nearest'))",
        "jnp.quantile(xr, 0.3, axis=0)", "jnp.quantile(x, 0.3, axis=1)", "jnp.quantile(v, 0.3)"],
    "rows": ["S(list(v)[1])", "V(list(v)[1])", "S(list(xr)[1])", "V(list(xr)[1], list(xc)[2])",
             "S(list(rep)[0])", "V(sum(a for a in xr))"],
    "repetition": [
        "jnp.repeat(v, 2)", "V(jnp.repeat(xr, 2, axis=1))", "jnp.repeat(xr, 2, axis=0)",
        "V(jnp.repeat(rep, 2, axis=0))", "V(jnp.repeat(xr, 2, axis=0, out_sharding=P('x')))",
        "T(lambda a: jnp.repeat(a, 2, out_sharding=P('x')), xr)",
        "T(lambda a: jnp.repeat(a, np.arange(8), axis=0, out_sharding=P('x')), xr)",
        "T(lambda a: jnp.repeat(a, 0, axis=1), xr)", "T(lambda a: a.repeat(2), v)",
        "jnp.cumsum(xr)", "jnp.cumprod(v)", "T(lambda a: jnp.cumsum(a, 1), xr)"],
    "what is whole on each device stays whole": [
        "V(jnp.convolve(v, A((5,)), mode='valid'))", "V(jnp.convolve(v, A((3,)), mode='valid'))",
        "V(jax.jit(lambda a, k: jnp.convolve(a, jnp.flip(k), mode='valid'))(v, A((5,))))",
        "V(jax.grad(lambda k: jnp.convolve(v, k, mode='valid').sum())(A((5,))))",
        "V(jax.jit(lambda a: lax.conv_general_dilated(a, jnp.ones((4, 2, 2, 1)), (1, 1), 'SAME'))"
        "(A((8, 2, 4, 4), 'x')))",
        *(f"over((AT.Explicit, AT.Auto), lambda m: V(jax.jit({f})(jax.device_put(np.arange(8.),"
          " P('x')), np.ones(5, np.float32))))" for f in (
              "lambda a, k: jnp.convolve(a, k, mode='valid')", "lambda a, k: k * 2")),
        "[np.asarray(a) for a in jax.jit(lambda a: (a, jax.random.key_data(jax.random.key("
        "0, impl='rbg'))))(v)]",
        "V(jax.jit(lambda a, k: (a, jax.random.uniform(k, (4,))))(v, jax.random.key(1)))",
        # The same function inside and outside of shard_map.
        "V((lambda f: jax.jit(lambda a, b: (SM(f, (P('x'),), P('x'))(a), f(b)))(A((32, 4), 'x'),"
        " rep))(jax.jit(lambda b: jnp.sin(b) @ jnp.ones((4, 3)))))",
        "V((lambda f: jax.jit(lambda a, b: (f(b), SM(f, (P('x'),), P('x'))(a)))(A((32, 4), 'x'),"
        " rep))(jax.jit(lambda b: jnp.sin(b) @ jnp.ones((4, 3)))))"],
    "requested where nothing else changes": [
        "T(lambda a: jnp.reshape(a, (8, 4), out_sharding=P(None, 'x')), xr)",
        "T(lambda a: lax.reshape(a, (8, 4), out_sharding=P('y')), rep)",
        "T(lambda a: a.reshape(8, -1, out_sharding=P()), x)",
        "T(lambda a: a.flatten(out_sharding=P('x')), A((8,)))", "V(v.ravel(out_sharding=P()))",
        "T(lambda a: a.flatten(out_sharding=P('y')), rep)",
        "V(v.reshape(8, out_sharding=P('y')), xr.reshape(8, 4, out_sharding=P(None, 'y')))",
        "T(lambda a: lax.reduce(a, 0., lax.add, (0,), out_sharding=P('x')), rep)",
        "T(lambda a: lax.reduce(a, 0., lax.add, (0,), out_sharding=P(None)), xc)",
        "T(lambda a: lax.conv_general_dilated(a, jnp.ones((4, 2, 1, 1)), (1, 1), 'SAME',"
        " out_sharding=P('x')), A((8, 2, 4, 4)))",
        "T(lambda a: jnp.full_like(a, 2.), xr)",
        "T(lambda a: jnp.zeros_like(a, out_sharding=P('x')), rep)"],
    "no elements": [
        "T(lambda a: a[:, :0].reshape(0), xr)",
        "T(lambda a: a.reshape(0, 4), D((8, 0, 3), 'x'))", "T(lambda a: a[:0].reshape(0, 2), xc)"],
    "shardings that cannot be": [
        "NS(mesh, P('x', None)).shard_shape((8,))", "NS(mesh, P(P.UNCONSTRAINED))",
        "mesh.abstract_mesh.devices", "NS(mesh.abstract_mesh, P('x')).device_set",
        "NS(mesh.abstract_mesh, P('x')).devices_indices_map((8,))",
        "NS(mesh.abstract_mesh, P('x')).is_fully_addressable",
        "jax.jit(lambda a: a, in_shardings='x')", "jax.reshard(jnp.ones(3), P('x'))",
        "jax.jit(lambda a: lax.with_sharding_constraint(a, NS(jax.make_mesh((4, 2), ('x', 'y'), "
        "axis_types=(AT.Auto,) * 2), P('y'))))(v)",
        "S(jax.device_put(np.ones(8), jax.memory.Space.Host))",
        "jax.jit(lambda a: a, in_shardings=P('x'))(jnp.ones(3))"],
    "greatest": [f"T(lambda a: lax.{name}(a, 2), {a})" for name in ("approx_max_k", "top_k")
                 for a in ("xr", "v")],
    "types print": [
        "t(x, xr, xc, v, rep, jnp.ones(3))", "repr(jax.typeof(x))", "str(x.aval.sharding)",
        "J(lambda x: jnp.sin(x) * 2 + x, x)", "[jax.typeof(x).shape, x.aval.ndim]",
    ],
    "elementwise operands agree or are whole": [
        "V(x + xr, x + rep, x + np.float32(1), xr + xc, x * xr[:, :1], x + v[:, None])",
        "t(1 - x, -x, x > 0, ~(x > 0), x ** 2, x % 2, jnp.maximum(x, 0), lax.is_finite(x))",
        "t(lax.clamp(0., x, 1.), lax.rsqrt(x), jnp.logical_and(x > 1, x < 3), jnp.round(x))",
        "t(x.astype(np.int32), lax.bitcast_convert_type(x, np.int16), lax.reduce_precision(x, 8, "
        "7))",
        "t(jnp.array(x), jnp.copy(x), lax.stop_gradient(x), lax.optimization_barrier(x))",
        "Z((8, 8), 'x', 'y') + Z((8, 8), 'y', 'x')", "Z((8, 8), 'x') + Z((8, 8), None, 'x')",
        "Z((8, 8), 'x') + Z((8, 8), ('x', 'y'))", "Z((8, 1), 'x') * Z((1, 8), None, 'x')",
        "t(Z((8, 8), 'x') + Z((1, 8), None, 'y'))", "xr + xr.T", "jnp.outer(v, v)",
    ],
    "choices": [
        "t(lax.select(v > 0, v, v), lax.select(Z(()) > 0, v, v), jnp.where(x > 2, x, 0))",
        "lax.select(Z((8,)) > 0, v, v)", "jnp.where(xr > 2, x, x)", "jnp.where(rep > 2, x, xr)",
    ],
    "axes come and go": [
        "t(x.T, x[None], jnp.expand_dims(x, (0, 2)), jnp.swapaxes(x, 0, 1), jnp.moveaxis(x, 0, 1))",
        "t(lax.squeeze(Z((1, 8), None, 'x'), (0,)), lax.transpose(Z((2, 8, 4), None, 'x'), (2, "
        "0, 1)))",
        "V(lax.broadcast_in_dim(v, (8, 4), (0,)), jnp.broadcast_to(v, (2, 8)))",
        "V(lax.broadcast_in_dim(v, (8, 4), (0,), out_sharding=P('x', 'y')))",
        "V(lax.rev(v, (0,)), jnp.flip(x, 1))", "J(lambda x: jnp.broadcast_to(x, (3, 8, 4)), x)",
        "t(jnp.concatenate([x, x]), jnp.concatenate([xc, xc]), jnp.stack([v, v], 1))",
        "V(lax.concatenate([Z((8, 4), 'x'), Z((4, 4), 'x')], 0))",
        "jnp.concatenate([xc, rep])", "jnp.concatenate([xc, xr])", "jnp.tile(v, 2)",
        "t(lax.split(xr, (2, 2), 1), lax.split(xr, (4, 4), 0))", "lax.split(xr, (2, 6), 0)",
    ],
    "reshape joins axes": [f"t(jnp.reshape(Z({a}), {b}))" for a, b in [
        ("(8, 4), 'x', 'y'", 32), ("(8, 4), 'x'", 32), ("(8, 4), None, 'y'", 32),
        ("(8, 2, 4), 'x', None, 'y'", 64), ("(8, 4, 2), 'x', 'y', None", 64),
        ("(8, 4, 2), 'x', None, 'y'", (32, 2)), ("(8, 4, 2), None, 'x', 'y'", (8, 8)),
        ("(8, 4, 2), None, None, 'y'", (8, 8)), ("(8, 1, 4), 'x', None, 'y'", (8, 4)),
        ("(8, 4, 6), 'x', 'y'", (8, 24)), ("(1, 8), None, 'x'", 8)]],
    "reshape splits an axis": [f"t(jnp.reshape(Z({a}), {b}))" for a, b in [
        ("(8, 4), 'x', 'y'", (4, 2, 4)), ("(8, 4), 'x', 'y'", (8, 2, 2)),
        ("(8, 4), 'x', 'y'", (2, 4, 4)), ("(64,), ('x', 'y')", (8, 8)),
        ("(64,), ('x', 'y')", (4, 16)), ("(64,), ('x', 'y')", (4, 2, 8)),
        ("(64, 4), 'x'", (4, 4, 4, 4)), ("(64, 4), 'x'", (2, 4, 8, 4)), ("(8, 4), 'x'", (4, 8)),
        ("(8, 4), 'x'", (1, 8, 4)), ("(8, 6), 'x'", (16, 3)), ("(8, 4, 6), 'x'", (32, 2, 3)),
        ("(8, 4, 6), None, 'x'", (2, 4, 4, 6)), ("(8, 4, 6), None, 'x'", (2, 4, 24)),
        ("(8, 8), 'x', 'y'", (4, 2, 4, 2))]],
    "reshape as asked": [
        "V(jnp.reshape(x, (32,), out_sharding=P('y')), jnp.ravel(x, out_sharding=P('x')))",
        "J(lambda x: lax.reshape(x, (2, 4, 4), out_sharding=P(None, 'x', 'y')), x)",
    ],
    "parts": [
        "t(lax.slice(x, (0, 0), (4, 4)), lax.slice(xr, (0, 1), (8, 3)), lax.dynamic_slice(x, (0, "
        "0), (4, 4)))",
        "t(xc[:4], xc[0], xc[::2], xc[:, None], x[...], xr[:, 0], xr[:, :2])",
        "lax.dynamic_slice(xr, (0, 0), (3, 4))", "t(jnp.pad(xc, ((1, 1), (0, 0))))",
        "jnp.pad(x, ((1, 1), (0, 0)))", "t(lax.dynamic_update_slice(x, A((4, 4), 'x', 'y'), (0, "
        "0)))",
        "lax.dynamic_update_slice(x, jnp.ones((8, 4)), (0, 0))",
        "t(lax.dynamic_index_in_dim(xc, 0, 0), lax.dynamic_slice_in_dim(xc, 0, 2, 0))",
    ],
    "systems of equations": [
        f"V(lax.linalg.triangular_solve(A({a}), A({b}), lower=True{how}))" for a, b, how in [
            ("(4, 4)", "(4, 2), None, 'y'", ", left_side=True"),
            ("(4, 4), 'x'", "(4, 2), None, 'y'", ", left_side=True"),
            ("(4, 4), None, 'x'", "(4, 2), None, 'y'", ", left_side=True, transpose_a=True"),
            ("(4, 4)", "(8, 4), 'x'", ""), ("(4, 4), 'y'", "(8, 4), 'x'", ", transpose_a=True"),
            ("(4, 4), None, 'y'", "(8, 4), 'x'", ""),
            ("(4, 4), None, 'x'", "(4, 2), None, 'y'", ", left_side=True"),
            ("(4, 4)", "(4, 2), 'x'", ", left_side=True"), ("(4, 4)", "(8, 4), None, 'y'", ""),
            ("(4, 4), 'x'", "(8, 4), None, 'y'", ""),
            ("(4, 4), 'x'", "(4, 4), 'y'", ", left_side=True"),
            ("(4, 4, 4), 'y'", "(4, 4, 2), 'x'", ", left_side=True"),
            ("(4, 4, 4), 'x'", "(4, 4, 2), 'x', None, 'y'", ", left_side=True")]] + [
        "V(jax.grad(lambda b: lax.linalg.triangular_solve(A((4, 4)), b, lower=True).sum())(xr))",
        "V(jnp.linalg.solve(A((4, 4)) + jnp.eye(4), A((4, 2), None, 'y')))",
        "V(jax.scipy.linalg.cho_solve((A((4, 4)), True), A((4, 2), None, 'y')))",
        "S(lax.linalg.tridiagonal_solve(v, v, v, A((8, 2))))",
        "V(lax.linalg.tridiagonal_solve(A((8,)), A((8,)) + 9, A((8,)), A((8, 2))))",
        "S(lax.linalg.tridiagonal_solve(A((8,)), A((8,)), A((8,)), A((8, 2), 'x')))",
        "S(lax.linalg.householder_product(A((8, 4)), A((4,), 'x')))",
        "S(lax.linalg.ormqr(A((8, 4)), A((4,)), A((8, 4))))",
        "S(lax.linalg.ormqr(A((8, 4)), A((4,)), xr))",
        "S(lax.linalg.symmetric_product(rep, A((8, 8), 'x')))",
        "S(lax.linalg.symmetric_product(rep, A((8, 8))))"],
    "choices are broadcast to where their operands are": [
        f"T(lambda c, a: {op}, {c}, {a})" for op in (
            "jnp.where(c > 1, a, 0.)", "jnp.where(c > 1, 0., a)", "jnp.select([c > 1], [a], 2.)",
            "jnp.where(c > 1, a[0], 0.)", "jnp.sum(c, 0, where=a > 1)", "jnp.where(c > 1, a, c)",
            "jax.nn.logsumexp(c, b=a, axis=1)", "jnp.max(c, initial=0, where=a > 1)",
            "jax.scipy.special.kl_div(c, a)", "jnp.broadcast_arrays(c, a, 1.)")
        for c, a in itertools.product(("x", "xr", "xc", "rep"), ("xr", "xc", "rep"))] + [
        f"T(jax.vmap(lambda c, a: {op}), {c}, {a})" for op in (
            "jnp.where(c > a, 1., a)", "jnp.select([c > 1], [a], 2.)", "jnp.sum(c, 0, where=a > 1)",
            "jax.nn.logsumexp(c, b=a, axis=1)", "jax.scipy.special.rel_entr(c, a)",
            "jax.scipy.stats.cauchy.pdf(c, a, a)")
        for c, a in itertools.product(
            ("Z((2, 8, 4))", "Z((2, 8, 4), None, 'x')", "Z((2, 8, 4), None, 'x', 'y')"), repeat=2)
        ] + [
        "V(jnp.where(xr > 3, xc, 0.), jnp.select([xc > 3], [xr], rep[0]))",
        "V(jnp.sum(xc, where=xr > 4))",
        "V(jax.grad(lambda c, a: jnp.where(c > 3, a * c, 1.).sum(), (0, 1))(xr, xc))"],
    "bounds, diagonals and matrices of a kind": [
        f"T(lambda a, b: {op}, {a}, {b})" for op in (
            "lax.clamp(a, b, 9.)", "lax.clamp(0., b, a)", "lax.clamp(0., b[0], a[0])",
            "lax.reduce((a, b), (0., 1.), lambda p, q: (p[0] + q[0], p[1] * q[1]), (1,))",
            "jax.scipy.signal.correlate(a, b, 'same')",
            "jax.scipy.signal.convolve(a, b[:2], 'same')")
        for a, b in itertools.product(("x", "xr", "xc", "rep"), repeat=2)] + [
        "V(jnp.trace(Z((4, 2, 8), 'x') + 1), jnp.trace(A((2, 4, 4), None, 'x', 'y')))",
        "V(jax.grad(lambda a: jnp.trace(a).sum())(A((2, 4, 4), None, 'x', 'y')))",
        "V(jax.scipy.linalg.companion(A((8, 3), 'x')))",
        "T(jax.scipy.linalg.toeplitz, A((4,)), A((4, 8), 'x'))",
        "V(jax.scipy.linalg.expm_frechet(A((4, 4)) / 16, A((4, 4), None, 'y')))"],
    "powers, rows of an array, and what is made like another": [
        f"T(jax.grad(lambda a, b: ({op}).sum(), (0, 1)), {a}, {b})" for op in (
            "a ** b", "lax.pow(a, b)", "a ** (b > 1)", "jnp.float_power(a, b)",
            "lax.complex(a, b).real", "jnp.where(b > 1, a, 1.)", "jnp.logaddexp(a, b)")
        for a, b in itertools.product(("x", "xr", "rep"), repeat=2)] + [
        f"T(jax.grad(lambda a, b: lax.broadcast_like(a, b).sum(), (0, 1)), {a}, {b})"
        for a, b in (("rep", "xr"), ("rep", "x"), ("xr", "x"), ("x", "x"), ("A((4,))", "xr"))] + [
        f"T(jax.grad(lambda a: {f}(a).sum()), {a})" for a in ("x", "xr", "rep") for f in (
            "lax.bessel_i1e", "lax.bessel_i0e", "lax.digamma", "jax.scipy.special.i1", "abs")] + [
        f"T(lambda a: jnp.{op}, {a})" for op in (
            "stack(a)", "concatenate(a)", "concatenate(a, None)", "vstack(a)")
        for a in ("Z((4, 4, 2))", "Z((4, 4, 2), 'x')")] + [
        "V(jax.grad(lambda a, b: (a ** b).sum(), (0, 1))(xr, rep))",
        "V(jnp.stack(xr), jnp.concatenate(A((4, 2, 2), 'x')))"],
    "gradients of windows and of places": [
        f"T(jax.grad(lambda a, k: lax.conv_general_dilated(a, k, {how}).sum(), (0, 1)), "
        f"Z((8, 4, 8, 8), {a}), Z((4, 4, 3, 3), {k}))"
        for how in ("(1, 1), 'SAME'", "(2, 2), 'SAME'", "(1, 1), 'SAME', rhs_dilation=(2, 2)")
        for a in ("'x'", "'x', None, 'y'", "None, 'y'", "None")
        for k in ("None", "'x'", "None, 'y'")] + [
        f"T(jax.grad(lambda a: (a.at[{i}].{f}(2.) * a).sum()), {a})"
        for i in ("()", "0", "0:4") for f in ("min", "max", "add") for a in ("x", "xr", "xc")] + [
        "V(*jax.grad(lambda a, k: lax.conv_general_dilated(a, k, (2, 2), 'SAME').sum(), (0, 1))("
        "A((8, 2, 4, 4), 'x', None, 'y'), A((2, 2, 3, 3))))",
        "V(jax.grad(lambda a: (a.at[()].min(2.) * a).sum())(xc))"],
    "products of stacks": [
        f"T(lambda a, b: lax.dot_general(a, b, (((2,), (2,)), ((0,), (0,)))), {a}, {b})"
        for a, b in itertools.product(("D((4, 2, 3))", "D((4, 2, 3), 'x')",
                                       "D((4, 2, 3), None, 'y')", "D((4, 2, 3), 'x', 'y')"),
                                      repeat=2)] + [
        "V(jnp.einsum('bij,bkj->bik', A((4, 2, 3)), A((4, 2, 3), 'x', 'y')))"],
    "convolutions of vectors": [f"V(jnp.{f}({a}, {b}, '{mode}'))" for f, mode, (a, b) in
        itertools.product(("convolve", "correlate"), ("same", "full", "valid"), (
            ("v", "A((3,))"), ("A((8,))", "A((2,), 'y')"), ("A((3,))", "v"), ("v", "v")))],
    "strided slices": [
        "T(lambda a: a[::2], D((8, 4), 'x'))", "V(jax.grad(lambda a: a[::2].sum())(xr))",
        "V(jax.grad(lambda a: a[:, 1::2].sum())(x))"],
    "formulas": [
        "t(lax.igamma(v, v), lax.igammac(v, v + 1), lax.igamma_grad_a(v, v), lax.bessel_i0e(x))",
        "t(lax.random_gamma_grad(x, x), jax.random.gamma(jax.random.key(0), 1.5, (4,)))",
        "t(jax.jvp(lambda a: lax.random_gamma_grad(a, x), (x,), (x,))[1])",
        "S(jax.jit(lax.igamma)(x, x), jax.jit(jax.grad(lambda a: lax.igamma(a, x).sum()))(x))",
    ],
    "folds": [
        "V(jnp.sum(x, 0), jnp.sum(x), jnp.max(x, 1), jnp.prod(v), jnp.argmax(x, 0), jnp.mean(x, "
        "0))",
        "t(jnp.any(x > 0), lax.reduce(xr, 0., lax.add, (0,)), jnp.var(x, 0), jnp.std(x))",
        "t(x.sum(keepdims=True), x.sum(0, keepdims=True), lax.reduce_and(xr > 0, (1,)))",
        "t(lax.reduce_sum(x, (0,), out_sharding=P('y')))", "J(lambda x: jnp.max(x, 1), x)",
        "V(jnp.cumsum(xc, 0), jnp.cumprod(xr, 1), jnp.sort(xc, 0), jnp.argsort(xr, 1))",
        "jnp.cumsum(x, 0)", "jnp.sort(x, 0)", "lax.sort((xr, rep), dimension=1)",
        "t(lax.top_k(xr, 2), lax.sort((xr, xr), dimension=1)[1])", "t(jnp.einsum('ij->j', x))",
    ],
    "products": [
        "V(xr @ rep.T, jnp.einsum('bij,bjk->bik', A((8, 4, 2), 'x'), A((8, 2, 3), 'x')))",
        "x @ x.T", "xr @ xr.T", "xc @ xc.T", "jnp.vdot(v, v)", "jnp.einsum('ij,j->i', x, A((4,), "
        "'y'))",
        "V(jnp.matmul(xc, xc.T, out_sharding=P(None, None)), jnp.dot(x, x.T, out_sharding=P('x')))",
        "V(jnp.einsum('ij,kj->ik', xr, rep, out_sharding=P('y', None)), jnp.tensordot(xr, rep.T, "
        "1))",
        "V(jnp.einsum('ij,j->i', x, A((4,), 'y'), out_sharding=P('x')))",
        "J(lambda a, b: jnp.matmul(a, b, out_sharding=P('x', None)), xc, xc.T)",
        "lax.dot_general(Z((8, 4, 2), 'x'), Z((8, 2, 5), 'y'), (((2,), (1,)), ((0,), (0,))))",
        "lax.dot_general(xc, Z((4, 8), 'x'), (((1,), (0,)), ((), ())))",
    ],
    "indexing": [
        "V(xc[jnp.array([0, 1])], jnp.take(xc, 1, axis=0), xr[:, jnp.array([3, 1])])",
        "x[jnp.array([0, 1])]", "V(xc.at[0].set(Z((4,), 'y')), xr.at[:, 0].set(Z((8,), 'x')))",
        "V(x.at[jnp.array([0, 5])].get(out_sharding=P(None, 'y')))",
        "V(x.at[jnp.array([0, 5])].add(1., out_sharding=P('x', 'y')))", "x.at[0].set(1.)",
        "J(lambda x: x.at[jnp.array([0, 1])].get(out_sharding=P(None, 'y')), x)",
        "V(xc.at[jnp.array([0, 1])].add(jnp.ones((2, 4), out_sharding=P(None, 'y'))))",
    ],
    "values from nothing": [
        "V(Z((8, 4), 'x'), jnp.ones(8, device=NS(mesh, P('x'))), jnp.full((8,), 2, "
        "out_sharding=P('y')))",
        "V(jnp.arange(8, out_sharding=P('x')), jnp.array(np.ones(8), out_sharding=P('x')))",
        "t(jnp.zeros_like(x), jnp.ones_like(x), jnp.full_like(x, 2), jnp.zeros_like(x, dtype=int))",
        "J(lambda: jnp.zeros((8, 4), out_sharding=P('x')))", "J(lambda x: jnp.zeros_like(x), x)",
        "J(lambda: lax.broadcasted_iota(np.int32, (8, 4), 0, out_sharding=P('x')))",
        "jnp.zeros((6,), out_sharding=P('x'))",
        "V(jax.random.normal(jax.random.key(0), (8, 4), out_sharding=P('x', 'y')))",
        "V(jax.random.randint(jax.random.key(1), (8,), 0, 5, out_sharding=P('x')))",
        "t(jax.random.bits(jax.random.key(0), (8,), out_sharding=P('x')), "
        "jax.random.permutation(jax.random.key(0), 8, out_sharding=P('x')))",
    ],
    "asked of other functions": [
        "S(jnp.percentile(xr, 50., axis=1, out_sharding=P('x')), jnp.repeat(xr, 2, axis=1, "
        "out_sharding=P('x')))",
        "t(lax.rng_bit_generator(jnp.array([1, 2, 3, 4], np.uint32), (8, 4), out_sharding=P('x')))",
        "t(lax.full_like(x, 2.), lax.broadcast(v, (2,), out_sharding=P('y', 'x')))",
        "t(jax.random.categorical(jax.random.key(0), jnp.zeros((8, 4)), out_sharding=P('x')), "
        "jax.random.dirichlet(jax.random.key(0), jnp.ones(4), (8,), out_sharding=P('x')))",
        "t(jax.jit(lambda a: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((8,), np.float32), "
        "a))(v))",
        "t(jnp.triu(Z((8, 8), 'x')), jnp.diag(v), jnp.meshgrid(v, jnp.ones(4)))",
        "t(lax.reduce_window(xr, -np.inf, lax.max, (1, 2), (1, 1), 'SAME'))",
    ],
    "reshard": [
        "V(jax.sharding.reshard(x, P('y', 'x')), jax.reshard(rep, P('x')), jax.reshard(x, "
        "P(None)))",
        "J(lambda x: jax.reshard(x, P('y', 'x')), x)", "jax.reshard(x, P('z'))",
        "V(jax.reshard(v, P('x', None)), jax.reshard(Z(()), P(None, None)))",
        "V(jnp.zeros(8, out_sharding=P('x', None)))",
        "t(jax.reshard({'a': x, 'b': v}, P('y')))", "V(jax.device_put(x, P('y')))",
        "V(lax.with_sharding_constraint(x, P('x', 'y')))", "lax.with_sharding_constraint(x, "
        "P('x'))",
        "J(lambda x: lax.with_sharding_constraint(x, P('x', 'y')), x)",
        "J(lambda x: jax.device_put(x, P('y')), x)[:60]",
    ],
}


@pytest.mark.parametrize("group", GROUPS, ids=lambda name: name.replace(" ", "-"))
def test_types_values_and_refusals_are_those_of_jax(jax_oracle, group):
    agree(jax_oracle, GROUPS[group])


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh((4, 2), ("x", "y"))


@pytest.fixture
def x(mesh):
    return jax.device_put(np.arange(32.0).reshape(8, 4), NamedSharding(mesh, P("x", "y")))


def test_without_explicit_axes_no_aval_names_one(mesh):
    auto = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    placed = jax.device_put(np.ones((8, 4)), NamedSharding(auto, P("x", "y")))
    for value in (placed, placed + 1, jnp.ones(3), jax.jit(jnp.sin)(placed)):
        assert jax.typeof(value).placement is None


def test_every_result_lies_as_its_type_says(mesh, x):
    functions = [jnp.sin, lambda a: a.T, lambda a: a.sum(0), lambda a: a.reshape(32),
                 lambda a: a * 2 + a, lambda a: jax.reshard(a, NamedSharding(mesh, P("y")))]
    for function in functions:
        for out in (function(x), jax.jit(function)(x), jax.jit(function)(x)):  # the last from C++
            want = getattr(jax.typeof(out), "sharding", None)
            spec = P(*(None,) * out.ndim) if want is None else want.spec
            assert out.sharding == NamedSharding(mesh, spec), (out.sharding, want)


def test_the_program_says_where_each_result_lies(x):
    text = jax.jit(lambda a: jnp.sin(a) * 2).lower(x).as_text()
    assert text.count('sdy.sharding_constraint') == 2
    assert text.count('[{"x"}, {"y"}]') == 4, text  # the argument, two constraints, the result


def test_a_primitive_without_a_rule_says_so(x):
    handle = jax.extend.core.Primitive("test_explicit_unruled")
    handle.def_abstract_eval(lambda a: a)
    with pytest.raises(NotImplementedError, match="has no sharding rule"):
        jax.make_jaxpr(handle.bind)(x)


def test_refusals_say_what_to_write(x):
    with pytest.raises(ShardingTypeError, match="out_sharding=P"):
        x @ x.T
    with pytest.raises(ShardingTypeError, match=r"\.at\[i\]\.get\(out_sharding"):
        x[jnp.array([0, 1])]


def test_parts_of_an_array_have_plain_types(x):
    assert str(jax.typeof(x.addressable_shards[0].data)) == "float32[2,2]"
    assert str(jax.typeof(jax.device_put(x, jax.devices()[0]))) == "float32[8,4]"


def test_an_empty_array_is_gathered_however_it_is_sharded(x, mesh):
    part = jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P(None, "y")))
    for y in (part, x):
        empty = jax.jit(lambda y: jnp.sin(y[:0]))(y)
        assert np.asarray(empty).shape == (0, 4) and np.asarray(empty + 1).dtype == np.float32


def test_gathered_values_are_numpys(x):
    index = jnp.array([5, 0, 5])
    sharding = NamedSharding(x.sharding.mesh, P(None, "y"))
    out = x.at[index].get(out_sharding=sharding)
    np.testing.assert_array_equal(out, np.asarray(x)[[5, 0, 5]])
    assert out.sharding.spec == sharding.spec


def test_what_is_made_beside_sharded_values_is_sharded_as_they_are(mesh):
    """JAX refuses these where a mesh is in force, and answers elsewhere."""
    numbers = np.arange(16, dtype=np.float32).reshape(4, 4)
    rows = jax.device_put(numbers, NamedSharding(mesh, P("x")))
    sums = np.pad(numbers.cumsum(1), ((0, 0), (1, 0)))
    with jax.set_mesh(mesh):
        for made, want in (
                (lambda a: jnp.cumulative_sum(a, axis=1, include_initial=True), sums),
                (lambda a: jnp.einsum("ij,jj->ij", a, a), numbers * numbers.diagonal())):
            for out in (made(rows), jax.jit(made)(rows)):
                np.testing.assert_allclose(out, want)
                assert str(jax.typeof(out)).startswith("float32[4@x,")
        np.testing.assert_array_equal(jnp.einsum("ii->i", rows), numbers.diagonal())
