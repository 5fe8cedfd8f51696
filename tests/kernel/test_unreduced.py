"""Do types over Explicit meshes say where a sum still waits, and who may work on its addends?

Types of results, printed programs, values, gradients and refusals of values that are unreduced or
reduced along mesh axes, outside and inside ``shard_map``, each compared with JAX.  Eight CPU
devices on both sides.

Invariant: every expected answer comes from JAX (``explicit.py``), but where a test says otherwise.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from explicit import agree

import saem as jax
import saem.numpy as jnp
from saem import export, lax
from saem.core.jaxpr import evaluate
from saem.sharding import AxisType, NamedSharding
from saem.sharding import PartitionSpec as P

# Unreduced, reduced and plain along y, all sharded along x.
U, R, N = ("D((8, 4), 'x', None, unreduced={'y'})", "D((8, 4), 'x', None, reduced={'y'})",
           "D((8, 4), 'x', None)")
C = "jnp.einsum('ij,jk->ik', x, A((4, 6), 'y'), out_sharding=P('x', None, unreduced={'y'}))"
WR = "jax.reshard(A((4, 4)), P(reduced={'x'}))"


def types(*operations: str) -> list[str]:
    """Return a program for each operation on ``c`` that is unreduced, and one that is reduced."""
    return [f"T(lambda c: {op}, {operand})" for op in operations for operand in (U, R)]


GROUPS = {
    "linear operations work on addends": types(
        "c + c", "c.reshape(8, 2, 2)", "c.reshape(4, 2, 4)", "c.T", "c[None]", "jnp.copy(c)",
        "jnp.broadcast_to(c, (3, 8, 4))", "c.astype('bfloat16')", "c.sum()", "c.sum(0)",
        "jnp.concatenate([c, c], 1)", "jnp.stack([c, c], 1)", "c[:, :2]", "c[:, 0]",
        "lax.select(True, c, c)", "lax.stop_gradient(c)", "lax.optimization_barrier(c)",
        "lax.squeeze(c[None], (0,))", "lax.reduce_precision(c, 8, 7)", "jnp.zeros_like(c)",
        "jnp.split(c, 2, 1)", "jnp.tril(c)", "lax.pad(c, 0., [(0, 0, 0), (1, 1, 0)])",
        "lax.dynamic_update_slice(c, c[:, :2], (0, 0))", "jnp.fft.fft(c, axis=1)",
        "lax.reduce(c, 0., lax.add, (0,))", "jnp.einsum('ij->ji', c)"),
    "others need the sum": types(
        "-c", "c - c", "c / 2", "2 / c", "jnp.sin(c)", "c > 0", "c == c", "jnp.maximum(c, 0)",
        "abs(c)", "lax.complex(c, c)", "lax.square(c)", "lax.dynamic_slice(c, (0, 0), (8, 2))",
        "c ** 2", "lax.rev(c, (1,))", "lax.clamp(0., c, 1.)", "c + 1", "1 + c", "c * 2", "2. * c",
        "lax.bitcast_convert_type(c, 'int32')", "c.mean(1)", "lax.pow(c, 2)", "jnp.isnan(c)"),
    "sums and products of two": [f"T(lambda c, d: {op}, {a}, {b})" for op, a, b in [
        ("c * c", U, N), ("c * d", U, N), ("d * c", U, N), ("c * d", U, R), ("d * c", U, R),
        ("c * d", R, R), ("c * d", R, N), ("c + d", R, N), ("c + d", R, U), ("c - d", R, N),
        ("c / d", R, R), ("c / d", U, R)]] + [
        f"T(lambda c, d: {op}, D((8, 4), {a}), D((8, 4), {b}))" for op, a, b in [
            ("c * d", "reduced={'y'}", "'y'"), ("c + d", "reduced={'y'}", "'x'"),
            ("c + d", "reduced={'y'}", "reduced={'x'}"),
            ("c + d", "unreduced={'y'}", "unreduced={'x'}"),
            ("c + d", "unreduced={'x'}, reduced={'y'}", "unreduced={'x'}, reduced={'y'}"),
            ("c + d", "unreduced={'x'}, reduced={'y'}", "unreduced={'x'}"),
            ("c * d", "unreduced={'y'}", "reduced={'x', 'y'}"),
            ("c * d", "unreduced={'x', 'y'}", "reduced={'x', 'y'}"),
            ("c * d", "unreduced={'x', 'y'}", "reduced={'x'}"),
            ("c * d", "unreduced={'y'}", "'y'"), ("jnp.sin(c)", "unreduced={'x'}, reduced={'y'}",
                                                  "'y'")]],
    "several operands alike": [f"T(lambda c, d: {op}, {a}, {b})" for op, a, b in [
        ("jnp.concatenate([c, d], 1)", U, N), ("jnp.concatenate([c, d], 1)", R, N),
        ("lax.select(d > 0, c, c)", U, N), ("lax.select(d > 0, c, d)", U, N),
        ("lax.select(d > 0, c, c)", R, N), ("lax.select(c > 0, d, d)", R, N),
        ("lax.dynamic_update_slice(c, d[:, :2], (0, 0))", U, N)]],
    "numbers join what is reduced": [f"J(lambda c: {op}, {R})" for op in (
        "c * 2", "c + jnp.float32(2)", "lax.mul(c, 2.)", "c > 0", "lax.pow(c, 2)",
        "lax.pad(c, 0., [(1, 1, 0), (0, 0, 0)])", "jnp.maximum(c, 0.)")] + [
        f"J(lambda c, d: c * d, {R}, D(()))", f"T(lambda c, d: c * d, {R}, D((1,)))",
        f"T(lambda c: c + np.ones(4, 'f'), {R})", f"J(lambda c: lax.pad(c, 0., [(1, 1, 0), "
        f"(0, 0, 0)]), {U})"],
    "products leave their sum open if asked": [
        f"J(lambda a, b: {op}, x, A((4, 6), 'y'))" for op in (
            "jnp.dot(a, b, out_sharding=P('x', None, unreduced={'y'}))",
            "jnp.matmul(a, b, out_sharding=P('x', None, unreduced={'y'}))",
            "jnp.einsum('ij,jk->ki', a, b, out_sharding=P(None, 'x', unreduced={'y'}))",
            "jnp.einsum('ij,jk->ik', a, b, out_sharding=P('x', unreduced={'y'}))",
            "jnp.einsum('ij,jk->ik', a, b, out_sharding=P('x', reduced={'y'}))",
            "jnp.dot(a, b, out_sharding=P('y', unreduced={'x'}))")] + [
        f"T(lambda a, b: jnp.einsum('ji,jk->ik', a, b, out_sharding=P(unreduced={s})), "
        f"D((8, 4), {a}), D((8, 4), {b}))" for s, a, b in [
            ("{'x'}", "'x'", "'x'"), ("{'y'}", "'x'", "'x'"), ("{'x', 'y'}", "'x'", "'x'"),
            ("{'x'}", "'x'", ""), ("{'x'}", "", ""), ("{'x', 'y'}", "('x', 'y')", "('x', 'y')"),
            ("{'x'}", "('x', 'y')", "('x', 'y')")]] + [
        f"T(lambda a, b: a @ b, D((8, 8), {a}), D((8, 8), {b}))" for a, b in [
            ("'x'", "reduced={'x'}"), ("reduced={'x'}", "reduced={'x'}"),
            ("unreduced={'x'}", "reduced={'x'}"), ("", "unreduced={'x'}"),
            ("'x'", "None, 'y', reduced={'x'}"), ("unreduced={'y'}", "'x'")]],
    "sums leave theirs open if asked": [
        f"J(lambda c: lax.reduce_sum(c, (1,), out_sharding=P({spec})), D((8, 8), {given}))"
        for spec, given in [
            ("None, unreduced={'x'}", "None, 'x'"), ("'y', unreduced={'x'}", "'y', 'x'"),
            ("None, unreduced={'x'}", ""), ("None, unreduced={'y'}", "'y'"),
            ("None", "unreduced={'x'}"), ("None, unreduced={'y'}", "unreduced={'x'}"),
            ("None, unreduced={'x'}", "None, 'y', unreduced={'x'}"),
            ("reduced={'x'}", "None, 'x'")]],
    "shapes as asked": [f"T(lambda c: {op}, D((8, 4), unreduced={{'y'}}))" for op in (
        "jnp.reshape(c, 32, out_sharding=P('x'))",
        "jnp.reshape(c, 32, out_sharding=P('x', unreduced={'y'}))",
        "lax.broadcast_in_dim(c, (3, 8, 4), (1, 2), out_sharding=P(unreduced={'y'}))",
        "lax.broadcast_in_dim(c, (4, 8, 4), (1, 2), out_sharding=P('x'))")],
    "reshard changes them": [f"T(lambda c: jax.reshard(c, P({spec})), {given})" for spec, given in [
        ("'x', None", U), ("'x', 'y'", U), ("", U), ("('x', 'y'), None", U), ("None, 'y'", U),
        ("'x', None, reduced={'y'}", U), ("'x', None, unreduced={'y'}", N),
        ("None, None, unreduced={'x'}", U), ("unreduced={'x', 'y'}", U), ("'x', 'y'", R),
        ("'x', None, unreduced={'y'}", R), ("None, 'y', reduced={'x'}", R)]] + [
        f"J(lambda c: jax.reshard(c, P('x', None)), {U})",
        f"T(lambda c: jax.device_put(c, NS(mesh, P('x', None))), {U})",
        f"T(lambda c: jax.device_put(c, NS(mesh, P('x', None, unreduced={{'y'}}))), {N})"],
    "values": [
        f"V(jax.reshard({C}, P('x', None)), jax.reshard({C}, P('x', 'y')), jax.reshard({C}, P()))",
        # Of captured constants XLA adds up copies: so the operands are arguments.
        f"V(jax.jit(lambda x, b: jax.reshard({C} + {C}, P('y')))(x, A((4, 6), 'y')))".replace(
            "A((4, 6), 'y'), out", "b, out"),
        f"V(jax.jit(lambda x, b: jax.reshard({C}[:, 1:4].T, P()))(x, A((4, 6), 'y')))".replace(
            "A((4, 6), 'y'), out", "b, out"),
        f"V(jax.reshard({C}.T, P()))",
        "V(jax.reshard(jax.reshard(rep, P(unreduced={'x'})), P()))",
        "V(jax.reshard(rep, P(reduced={'x'})) * 2)",
        "V(jax.reshard(lax.reduce_sum(xc, (1,), out_sharding=P(None, unreduced={'y'})), P()))",
        f"[np.asarray({C}.addressable_data(i)) for i in range(8)]",
        "[np.asarray(jax.reshard(rep, P(unreduced={'x'})).addressable_data(i)) for i in range(8)]",
        f"repr({C})", f"str({C} + {C})", f"[{C}.is_fully_replicated, {C}.is_fully_addressable]",
        f"np.asarray({C})", f"[np.asarray(s.data) for s in {C}.addressable_shards]",
        f"{C}.addressable_shards[0].index", f"{C}.tolist()", f"jax.device_get({C})",
        "jax.device_put(np.ones((8, 4)), P(unreduced={'x'}))",
        "S(jax.device_put(rep, NS(mesh, P(unreduced={'x'}))))",
        "V(jax.device_put(np.ones((8, 4)), NS(mesh, P('y', reduced={'x'}))))",
        "S(jnp.zeros((8, 4), out_sharding=P(unreduced={'y'})))",
        "V(jnp.zeros((8, 4), out_sharding=P('x', reduced={'y'})))",
        "S(jax.random.normal(jax.random.key(0), (8, 4), out_sharding=P(unreduced={'y'})))",
    ],
    "places in and out of jit": [
        "S(jax.jit(lambda w: w, out_shardings=P(unreduced={'x'}))(rep))",
        "S(jax.jit(lambda w: w, out_shardings=P(reduced={'x'}))(rep))",
        "S(jax.jit(lambda w: w, in_shardings=P(reduced={'x'}))(rep))",
        "S(jax.jit(lambda w: w, in_shardings=P(unreduced={'x'}))(rep))",
        f"V(jax.jit(lambda w: w, out_shardings=NS(mesh, P('x', None)))({C}))",
        f"S(jax.jit(lambda w: w + w, donate_argnums=0)({C}))",
        f"S(jax.jit(lambda w: w * 2)({WR}), {WR} @ {WR})",
        f"repr(jax.jit(lambda w: w + w).lower({U}).compile().output_shardings.spec)",
        f"[repr(jax.eval_shape(lambda: {C}).sharding.spec)]",
        f"J(jax.jit(lambda w: w * 2), {WR})",
        f"T(lambda c: jax.sharding.auto_axes(lambda c: c * 2, out_sharding=P('x', None, "
        f"unreduced={{'y'}}))(c), {N})",
        f"T(lambda c: jax.sharding.auto_axes(lambda c: c * 2, out_sharding=P('x', None))(c), {U})",
        f"J(lambda i, c: c.at[i].get(out_sharding=P('x')), D((8,), 'x', dtype=np.int32), {R})",
        "T(lambda i, c: jnp.zeros((4, 4)).at[i].add(c, out_sharding=P(None, None, "
        "unreduced={'x'})), D((8,), 'x', dtype=np.int32), xr)",
    ],
    "gradients": [
        "J(lambda a, b: jax.vjp(lambda a, b: jnp.einsum('ij,jk->ik', a, b, "
        "out_sharding=P('x', None, unreduced={'y'})), a, b)[1](jax.reshard(jnp.ones((8, 6)), "
        "P('x', None, reduced={'y'}))), x, A((4, 6), 'y'))",
        "V(jax.grad(lambda a, b: (jax.reshard(jnp.einsum('ij,jk->ik', a, b, out_sharding=P('x', "
        "None, unreduced={'y'})), P('x', None)) ** 2).sum(), (0, 1))(x, A((4, 6), 'y')))",
        f"t(jax.grad(lambda w: jnp.tanh(xr @ w).sum())({WR}))",
        f"V(jax.reshard(jax.grad(lambda w: jnp.tanh(xr @ w / 40).sum())({WR}), P()))",
        "V(jax.grad(lambda w: jnp.tanh(xr @ jax.reshard(w, P(reduced={'x'})) / 40).sum())(A((4, "
        "4))))",
        "V(jax.jit(jax.grad(lambda w: jnp.tanh(xr @ jax.reshard(w, P(reduced={'x'})) / 40).sum())"
        ")(A((4, 4))))",
        *(f"T(jax.grad(lambda w: {op}), {WR})" for op in (
            "(w * 2).sum()", "jnp.sin(w).sum()", "(w * w).sum()", "(w @ w).sum()", "w[:2].sum()",
            "w.astype('bfloat16').sum()", "(w / 2).sum()", "jnp.exp(w).sum()", "(-w).sum()",
            "(w + w).sum()", "(w - 1).sum()", "jnp.concatenate([w, w]).sum()", "w[None].sum()",
            "w.sum(0).sum()", "jnp.pad(w, 1).sum()", "jnp.where(True, w, w).sum()",
            "lax.dynamic_slice(w, (0, 0), (2, 2)).sum()", "lax.select(w > 0, w, w).sum()",
            "jnp.maximum(w, 0).sum()", "jax.nn.relu(w).sum()", "jax.jit(lambda w: w * 2)(w).sum()",
            "jax.checkpoint(lambda w: jnp.sin(w * 2))(w).sum()",
            "lax.scan(lambda c, _: (c * 2, None), w, None, length=3)[0].sum()",
            "jax.custom_jvp(lambda w: w * 2)(w).sum()")),
        f"V(jax.reshard(jax.grad(lambda w: (jnp.sin(w) * w * 3).sum())({WR}), P()))",
        f"V(jax.reshard(jax.grad(lambda w: lax.scan(lambda c, _: (c * 2, None), w, None, length=3)"
        f"[0].sum())({WR}), P()))",
        f"V(jax.reshard(jax.grad(lambda w: jnp.maximum(w, 2).sum())({WR}), P()))",
        f"J(jax.grad(lambda w: (w * w).sum()), {WR})",
        f"J(jax.grad(lambda w: (w + w).sum()), {WR})",
        f"J(jax.grad(lambda w: jnp.exp(w).sum()), {WR})",
        f"t(jax.vjp(lambda w: w * 2, {WR})[1]({WR}))",
        f"t(jax.vjp(lambda w: w * 2, {WR})[1](jax.reshard(A((4, 4)), P(unreduced={{'x'}}))))",
        f"V(jax.jvp(lambda w: w * 2, ({WR},), ({WR},)))",
        f"[str(jax.typeof({WR}).to_tangent_aval()), str(jax.typeof({C}).to_ct_aval())]",
    ],
    "loops and branches": [f"T(lambda c, d: {op}, {U}, {N})" for op in (
        "lax.scan(lambda s, _: (s + s, None), c, None, length=3)[0]",
        "lax.scan(lambda s, _: (d, None), c, None, length=3)[0]",
        "lax.scan(lambda s, _: (s + s, s), c, None, length=3)",
        "lax.while_loop(lambda s: True, lambda s: s + s, c)",
        "lax.fori_loop(0, 3, lambda i, s: s + s, c)",
        "lax.cond(True, lambda s: s + s, lambda s: s, c)",
        "lax.cond(True, lambda c, d: c + c, lambda c, d: d, c, d)")] + [
        "T(lambda c: jax.vmap(lambda r, b: jnp.einsum('j,jk->k', r, b, out_sharding=P(None, "
        "unreduced={'y'})), (0, None))(c, A((4, 6), 'y')), x)",
        f"T(lambda c: jax.vmap(lambda r: jax.reshard(r, P(None, unreduced={{'y'}})))(c), {N})"],
    "specs": [
        *(f"{spec}" for spec in (
            "NS(mesh, P('x', unreduced={'z'}))", "NS(mesh, P('x', reduced={'z'}))",
            "over((AT.Auto,) * 2, lambda m: NS(m, P('x', unreduced={'y'})))",
            "over((AT.Explicit, AT.Auto), lambda m: NS(m, P('x', reduced={'y'})))",
            "over((AT.Explicit, AT.Auto), lambda m: repr(NS(m, P(unreduced={'x'}))))",
            "P('x', unreduced={'x'})", "P(unreduced=['x'])", "P(unreduced={None})",
            "P('x', unreduced={'y'}, reduced={'y'})", "list(P('x', unreduced={'y'}))",
            "P('x', unreduced={'y'})[0]", "P(*P('x', reduced={'y'}))",
            "P('x', unreduced={'y'}) + ('z',)", "('a',) + P('x', reduced={'y'})",
            "[repr(P('x', unreduced={'y'}) + P(None)), repr(P(None) + P('x', unreduced={'y'}))]",
            "[repr(P('x', unreduced={'y'}).update(partitions=(None,))), len(P(None, "
            "reduced={'y'}))]",
            "[P('x', unreduced={'y'}).index('x'), P('x', unreduced={'y'}).partitions]",
            "NS(mesh, P('x', unreduced={'y'})).devices_indices_map((8,))",
            "NS(mesh, P('x', unreduced={'y'})).shard_shape((8,))",
            "[NS(mesh, P('x', **s)).is_equivalent_to(NS(mesh, P('x')), 1) for s in "
            "({'unreduced': {'y'}}, {'reduced': {'y'}})]",
            "[str(NS(mesh, s)._to_xla_hlo_sharding(2)) for s in (P('x', unreduced={'y'}), P(None, "
            "unreduced={'y'}), P(unreduced={'x', 'y'}), P('x', reduced={'y'}))]",
            "[sorted(NS(mesh, s).replicated_axes) for s in (P(unreduced={'y'}), P('x', "
            "reduced={'y'}))]",
            f"[repr(jax.typeof({C}).sharding.spec), repr(jax.typeof({C})), "
            f"repr(jax.typeof({C}).manual_axis_type)]",
            "jax.sharding.ManualAxisType(varying={'x'}, unreduced={'x'})",
            "repr(jax.sharding.ManualAxisType(varying={'x'}, unreduced={'y'}))")),
    ],
    "casts inside shard_map": [f"J(SM(lambda c: {op}, P({i}), P({o})), {a})" for op, i, o, a in [
        ("c", "'x', None, unreduced={'y'}", "'x', None, unreduced={'y'}", U),
        ("c", "'x', None, unreduced={'y'}", "'x', None", U),
        ("c", "'x', None, reduced={'y'}", "'x', None, reduced={'y'}", R),
        ("c", "'x', None, reduced={'y'}", "'x', None", R), ("c", "'x', None", "'x', None", U),
        ("c", "'x', None, unreduced={'y'}", "'x', None", N),
        ("lax.psum(c, 'y')", "'x', None, unreduced={'y'}", "'x', None", U),
        ("lax.psum(c, 'x')", "'x', None, unreduced={'y'}", "None, None, unreduced={'y'}", U),
        ("lax.psum(c, ('x', 'y'))", "'x', None, unreduced={'y'}", "", U),
        ("lax.psum(c, 'y')", "'x', None, reduced={'y'}", "'x', None", R),
        ("lax.pmean(c, 'y')", "'x', None, unreduced={'y'}", "'x', None", U),
        ("lax.pmax(c, 'y')", "'x', None, unreduced={'y'}", "'x', None", U),
        ("lax.pcast(c, 'y', to='varying')", "'x', None, unreduced={'y'}", "'x', 'y'", U),
        ("lax.pcast(c, 'y', to='unreduced')", "'x', None", "'x', None, unreduced={'y'}", N),
        ("lax.pcast(c, 'y', to='unreduced')", "'x', 'y'", "'x', None, unreduced={'y'}", "x"),
        ("lax.pcast(c, 'y', to='reduced')", "'x', None", "'x', None, reduced={'y'}", N),
        ("lax.pcast(c, 'y', to='reduced')", "'x', 'y'", "'x', None, reduced={'y'}", "x"),
        ("lax.pcast(c, 'y', to='varying')", "'x', None, reduced={'y'}", "'x', 'y'", R),
        ("lax.pcast(c, ('x', 'y'), to='varying')", "'x', None, reduced={'y'}", "'x', 'y'", R),
        ("lax.pcast(c, 'y', to='other')", "'x', None", "'x', None", N),
        ("lax.psum_scatter(c, 'y', scatter_dimension=1, tiled=True)",
         "'x', None, unreduced={'y'}", "'x', 'y'", U),
        ("lax.all_gather(c, 'y', axis=1, tiled=True, to='reduced')", "'x', 'y'",
         "'x', None, reduced={'y'}", "x"),
        ("lax.all_gather(c, 'y', to='reduced')", "'x', None", "'x', None", N),
        ("lax.all_gather(c, 'y', to='other')", "'x', None", "'x', None", N),
        ("lax.ppermute(c, 'y', [(0, 1)])", "'x', None, unreduced={'y'}", "'x', None", U),
        ("lax.ppermute(c, 'x', [(0, 1)])", "'x', None, unreduced={'y'}",
         "'x', None, unreduced={'y'}", U),
        ("jnp.ones(3)", "'x', None", "unreduced={'y'}", N),
        ("jnp.ones(3)", "'x', None", "reduced={'y'}", N),
        ("lax.axis_index('y')", "'x', None", "unreduced={'y'}", N)]] + [
        f"T(SM(lambda c: {op}, P('x', None, {s}={{'y'}}), P('x', None, {s}={{'y'}})), {a})"
        for s, a in (("unreduced", U), ("reduced", R)) for op in (
            "c + c", "c * 2", "c + 1", "jnp.sin(c)", "c.astype('int32')")] + [
        f"J(SM(lambda c, d: c * d, (P('x', None, reduced={{'y'}}), P('x', 'y')), P('x', 'y')), "
        f"{R}, D((8, 8), 'x', 'y'))",
        f"T(SM(lambda c, d: c + d, (P('x', None, unreduced={{'y'}}), P('x', 'y')), P('x', 'y')), "
        f"{U}, D((8, 8), 'x', 'y'))",
        f"T(jax.shard_map(lambda c: lax.psum(c, 'y'), out_specs=P('x', None)), {U})",
        f"T(SM(lambda c: c, P(unreduced={{'y'}}), P(unreduced={{'y'}}), axis_names={{'y'}}), {U})",
        f"T(SM(lambda c: c + c, P('x'), P('x'), axis_names={{'x'}}), {U})",
        "over((AT.Auto,) * 2, lambda m: T(jax.shard_map(lambda c: c, in_specs=P(unreduced={'y'}), "
        "out_specs=P()), jnp.ones(8)))",
        "over((AT.Auto,) * 2, lambda m: J(jax.shard_map(lambda c: lax.psum(lax.pcast(c, 'y', "
        "to='unreduced'), 'y'), in_specs=P('y'), out_specs=P()), jnp.ones(8)))",
    ],
    "values and gradients of shard_map": [
        f"V(SM(lambda c: lax.psum(c, 'y'), P('x', None, unreduced={{'y'}}), P('x', None))({C}))",
        f"V(SM(lambda c: lax.psum_scatter(c, 'y', scatter_dimension=1, tiled=True), P('x', None, "
        f"unreduced={{'y'}}), P('x', 'y'))({C}))",
        "V(jax.reshard(SM(lambda a, b: lax.pcast(a @ b, 'y', to='unreduced'), (P('x', 'y'), "
        "P('y')), P('x', None, unreduced={'y'}))(x, A((4, 6), 'y')), P()))",
        f"V(jax.reshard(jax.grad(lambda w: SM(lambda w, x: jnp.sin(x @ w), (P(reduced={{'x'}}), "
        f"P('x')), P('x'))(w, xr).sum())({WR}), P()))",
        "V(jax.grad(lambda w: SM(lambda w, x: jnp.sin(x @ lax.pcast(w, 'x', to='reduced')), (P(), "
        "P('x')), P('x'))(w, xr).sum())(A((4, 4))))",
        "V(jax.grad(lambda w: SM(lambda w: jnp.sin(lax.all_gather(w, 'x', tiled=True, "
        "to='reduced')), P('x'), P(None, reduced={'x'}))(w).sum())(xr))",
        "V(jax.grad(lambda w: (SM(lambda w: lax.psum(lax.pcast(w, 'x', to='unreduced'), 'x'), "
        "P('x'), P())(w) ** 2).sum())(xr))",
        f"T(jax.grad(lambda c: SM(lambda c: lax.psum(c, 'y'), P('x', None, unreduced={{'y'}}), "
        f"P('x', None))(c).sum()), {U})",
    ],
    "exported programs take and give addends": [
        f"T(lambda c, d: jax.export.export(jax.jit(lambda c: {op}))(c).call(d), {made}, {given})"
        for op, made, given in [
            ("c + c", U, U), ("c + c", U, N), ("c + c", U, R), ("c * 2", N, N), ("c * 2", N, U),
            ("c + c", R, R), ("c + c", R, N), ("jax.reshard(c, P())", U, U),
            ("jax.reshard(c, P('x', None, unreduced={'y'}))", N, N)]],
}


@pytest.mark.parametrize("group", GROUPS, ids=lambda name: name.replace(" ", "-"))
def test_unreduced_and_reduced_values_are_those_of_jax(jax_oracle, group):
    agree(jax_oracle, GROUPS[group])


@pytest.fixture
def mesh():
    with jax.set_mesh(jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)) as m:
        yield m


def placed(shape, *spec, **sums):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return jax.device_put(values, P(*spec, **sums))


def open_product(a, b):
    return jnp.dot(a, b, out_sharding=P("x", None, unreduced={"y"}))


def test_a_file_keeps_which_sums_are_open(mesh):
    whole = placed((8, 4), "x", None)
    c = jax.reshard(whole, P("x", None, unreduced={"y"}))
    back = export.deserialize(export.export(jax.jit(lambda c: (c + c, jax.reshard(c, P()))))(
        c).serialize())
    for given in (c, whole):
        twice, once = jax.jit(back.call)(given)
        assert jax.typeof(twice).sharding.spec == P("x", None, unreduced={"y"})
        np.testing.assert_array_equal(jax.reshard(twice, P()), 2 * np.asarray(whole))
        np.testing.assert_array_equal(once, whole)


def test_the_text_of_a_program_says_what_is_unreduced(mesh):
    a, b = placed((8, 4), "x", "y"), placed((4, 6), "y")
    text = jax.jit(open_product).lower(a, b).as_text()
    assert re.search(r'sdy\.sharding_constraint %0 <@mesh, \[\{"x"\}, \{\}\], unreduced=\{"y"\}>',
                     text), text
    assert '#sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>' in text
    reduced = jax.jit(lambda w: w * 2).lower(placed((8, 4), reduced={"x"})).as_text()
    assert "unreduced" not in reduced


@pytest.mark.parametrize("program", [
    lambda: jax.reshard(jax.reshard(jnp.arange(8.0), P("x", unreduced={"y"})), P()),
    lambda: jax.reshard(jax.reshard(jnp.arange(8.0), P(unreduced={"x", "y"})), P()),
    lambda: jax.reshard(jax.device_put(jnp.arange(8.0), P(unreduced={"y"})), P()),
    lambda: jax.reshard(jax.jit(lambda: jnp.arange(8.0), out_shardings=P(unreduced={"y"}))(),
                        P()),
    lambda: jax.grad(lambda w: (jax.reshard(w, P(reduced={"x"})) * jax.reshard(
        jnp.arange(8.0), P(reduced={"x"}))).sum())(jnp.ones(8)),
])
def test_what_is_whole_is_no_addend_of_itself(mesh, program):
    """Of a value that every device computes one part of the addends is it, the others are zero."""
    for run in (program, jax.jit(program)):
        np.testing.assert_array_equal(run(), np.arange(8.0))


def test_devices_hold_the_addends(mesh):
    a, b = placed((8, 4), "x", "y"), placed((4, 6), "y")
    out = open_product(a, b)
    halves = [np.asarray(a)[:, s] @ np.asarray(b)[s] for s in (slice(0, 2), slice(2, 4))]
    for number in range(8):
        row, half = divmod(number, 2)
        np.testing.assert_array_equal(out.addressable_data(number),
                                      halves[half][2 * row: 2 * row + 2])


def test_the_numpy_evaluator_adds_up(mesh):
    """Whole values stand for their addends: what reshard gives is what was there."""
    a, b = placed((8, 4), "x", "y"), placed((4, 6), "y")

    def program(a, b):
        parts = jax.shard_map(lambda c: lax.psum(c + c, "y"), out_specs=P("x", None))
        made = jax.shard_map(lambda a, b: lax.pcast(a @ b, "y", to="unreduced"),
                             in_specs=(P("x", "y"), P("y")),
                             out_specs=P("x", None, unreduced={"y"}))
        return jax.reshard(open_product(a, b), P()), parts(open_product(a, b)), made(a, b)

    wanted = np.asarray(a) @ np.asarray(b)
    outs = evaluate(jax.make_jaxpr(program)(a, b), np.asarray(a), np.asarray(b))
    for got, times in zip(outs, (1, 2, 1)):
        np.testing.assert_allclose(got, wanted * times)


def test_programs_without_sums_ask_for_none():
    assert jax.typeof(jnp.ones(3)).placement is None
    assert not jax.typeof(jnp.ones(3)).sums.any


def test_numbers_of_addends_are_not_read(mesh):
    out = open_product(placed((8, 4), "x", "y"), placed((4, 6), "y"))
    for read in (np.asarray, lambda x: x.tolist(), jax.device_get):
        with pytest.raises(NotImplementedError, match="unreduced"):
            read(out)
    moved = jax.device_put(out, NamedSharding(mesh, P()))
    np.testing.assert_array_equal(moved, np.asarray(jax.reshard(out, P())))
