"""Do programs exported with open sizes mean what JAX's mean, for each size they are called with?

Each row is exported and called with several sizes on both sides: the types of results, which show
how dimension expressions are simplified, and the numbers.  What refuses on JAX refuses here.

Read before: ``export.symbolic``, ``core.dimensions``, ``compile.sizes``.
Invariant: expected answers are JAX's, or a function's own before it was exported.
"""

from __future__ import annotations

import builtins
import os
import subprocess
import sys

import numpy as np
import pytest
from both import source_of

import saem as jax
import saem.numpy as jnp
from saem import export, lax
from saem.core.dimensions import Dim, lower
from saem.core.errors import InconclusiveDimensionOperation

pytestmark = pytest.mark.usefixtures("little_effort")

# Shapes (``;`` between arguments, ``@`` before constraints) | sizes of calls | function of x, y.
ROWS = """
a, 3 | a=2; a=5 | x.sum(0) * 2
a, 3 | a=2; a=1 | x + 1
a | a=2; a=5 | x.mean()
a, b | a=2 b=3; a=1 b=1 | jnp.sin(x) @ x.T
a | a=4 | jnp.zeros(x.shape) + x
a | a=4; a=1 | jnp.ones((x.shape[0], 2)) * x[:, None]
a | a=4 | jnp.arange(x.shape[0]) + x
a, 4 | a=2; a=3 | x.reshape((2, -1))
a, b | a=2 b=3 | x.reshape(-1)
a, b | a=2 b=3 | jnp.transpose(x)
a; b | a=2 b=3; a=1 b=4 | jnp.concatenate([x, y])
a | a=2; a=3 | jnp.stack([x, x])
a | a=5; a=3 | x[1:-1]
a | a=5; a=1 | x[1:]
a | a=5; a=2 | x[:3]
a@a>=3 | a=5; a=3 | x[:3]
a | a=5; a=6 | x[::2]
a | a=5; a=6; a=1 | x[1::2]
a | a=5; a=6; a=1 | x[2::2]
a | a=5; a=6; a=1 | x[3::3]
a+1 | a=5; a=1; a=2 | x[1:-1:2]
a+1 | a=5; a=1; a=2 | x[:-2:2]
a | a=5; a=6 | x[::-1]
a | a=5 | x[0]
a | a=5 | x[-1]
a, 3 | a=5 | x[:, 1]
a | a=5 | x.shape[0] + x
a | a=5 | jnp.array(x.shape[0])
a | a=5 | x.shape[0] * 2.
a | a=5 | x.shape[0] // 2
a | a=5 | x.shape
a | a=5 | jnp.argsort(x)
a | a=5 | jnp.argmax(x)
2*a | a=2; a=3 | jnp.split(x, 2)
a | a=3 | jnp.tile(x, 3)
a | a=3 | jnp.pad(x, (1, 2))
a | a=3 | jnp.repeat(x, 2)
a | a=2; a=3 | jnp.tile(x, x.shape[0])
a | a=3 | jax.grad(lambda y: (jnp.tile(y, (x.shape[0], 2)) ** 2).sum())(x)
a | a=4 | jnp.cumsum(x)
a, b | a=2 b=3 | jnp.einsum('ij,kj->ik', x, x)
a | a=4 | lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.)
a | a=4; a=1 | lax.scan(lambda c, y: (c + y, c * y), 0., x)
a, 3 | a=4 | lax.map(lambda r: r * 2, x)
a, 3 | a=3 | jax.vmap(lambda r: r @ r)(x)
a, b | a=2 b=3 | jax.grad(lambda x: jnp.mean(jax.nn.softmax(x)[:, 0]))(x)
a, b | a=2 b=3 | jax.nn.logsumexp(x, axis=1)
a, b | a=2 b=3 | (x - x.mean(0)) / jnp.std(x, axis=0)
a, b | a=2 b=3 | jnp.where(x > 0, x, 0)
a | a=3 | jax.random.normal(jax.random.key(0), x.shape)
a | a=3 | jax.random.bernoulli(jax.random.key(0), .5, x.shape)
a | a=2; a=3 | jax.random.key_data(jax.random.split(jax.random.key(0), x.shape[0]))
a | a=4 | x if x.shape[0] > 4 else x * 2
a | a=4 | x if x.shape[0] == 4 else x * 2
a | a=4 | [x for _ in range(x.shape[0])]
a | a=4 | jnp.linspace(0, 1, x.shape[0])
a | a=4 | x.reshape(3, -1)
a; b | a=4 b=4 | x + y
a; a + 1 | a=4 | x + y
a; 2*a + 1 | a=4 | jnp.concatenate([x, y])
a, 1, h, w | a=2 h=5 w=6 | lax.conv_general_dilated(x, jnp.ones((2, 1, 3, 3)), (1, 1), 'SAME')
a, 1, h, w@h>=3&w>=3 | a=2 h=5 w=6 | lax.conv(x, jnp.ones((2, 1, 3, 3)), (2, 2), 'VALID')
a@a>=2 | a=5; a=2 | lax.reduce_window(x, 0., lax.add, (2,), (2,), 'VALID')
a, 3 | a=2; a=4 | x[jnp.array([0, 0])]
a, 3 | a=2; a=4 | x[:, jnp.array([0, 2])]
a, 3 | a=4 | x.at[0].set(1.)
a, 3 | a=4 | x.at[:, 1].add(2.)
a, 3 | a=4 | jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
a, 3 | a=4 | lax.dynamic_slice(x, (1, 0), (2, 3))
a, 3 | a=4 | lax.dynamic_slice_in_dim(x, 1, x.shape[0] - 1, 0)
a, 3 | a=4 | lax.dynamic_update_slice(x, jnp.ones((1, 3)), (1, 0))
a, 3 | a=4 | jnp.broadcast_to(x[:, None], (x.shape[0], 2, 3))
a | a=4 | jnp.flip(x)
a | a=4 | jnp.roll(x, 1)
a | a=4 | jnp.diff(x)
a, a | a=3 | jnp.linalg.cholesky(x @ x.T + 10 * jnp.eye(x.shape[0]))
a, a | a=3 | jnp.tril(x)
a, a | a=3 | jnp.trace(x)
a, 3 | a=2 | lax.top_k(x, 2)
a | a=4 | jnp.nonzero(x)
a | a=4 | lax.cond(x[0] > 0, lambda v: v + 1, lambda v: v * 2, x)
a | a=4 | lax.while_loop(lambda v: jnp.sum(v) < 40, lambda v: v + 1, x)
a, 3 | a=4 | jax.jit(lambda v: v * 2)(x)
a, 3 | a=4 | jax.checkpoint(jnp.sin)(x)
a | a=4 | jnp.maximum(x, x.shape[0])
a, b, 4 | a=2 b=3 | jax.nn.dot_product_attention(x[:, :, None], x[:, :, None], x[:, :, None])
a | a=4 | jnp.outer(x, x)
a | a=4 | x.size * x
a | a=4 | jnp.median(x)
a | a=4 | jnp.unique(x, size=3)
a | a=4 | jnp.fft.fft(x)
a | a=4 | jnp.ones(3)[x.shape[0] - 3]
a, 2*b | a=2 b=3 | x.reshape(x.shape[0], 2, -1)
a, 3 | a=2 | len(x) * x
a | a=4 | jnp.meshgrid(x, x)
a, 3 | a=2 | jax.jacfwd(lambda v: v.sum(0))(x)
a, h, w, 3@h>=3&w>=3 | a=2 h=7 w=9; a=1 h=6 w=5 | conv(x, K, (2, 2), 'SAME', dimension_numbers=NHWC)
a, h, w, 3@h>=3&w>=3 | a=2 h=7 w=9 | conv(x, K, (2, 1), 'SAME_LOWER', dimension_numbers=NHWC)
a, 1, h@h>=3 | a=2 h=7; a=1 h=4 | conv(x, L, (2,), 'SAME', rhs_dilation=(1,))
a, 1, h@h>=5 | a=2 h=7 | conv(x, L, (2,), 'SAME', rhs_dilation=(2,))
b, h, w, 3 | b=2 h=5 w=4 | lax.conv_transpose(x, K, (2, 2), 'SAME', dimension_numbers=NHWC)
a, h, w, 3@h>=3&w>=3 | a=2 h=7 w=9; a=1 h=6 w=5 | most(x, (1, 3, 3, 1), (1, 2, 2, 1), 'SAME')
a, h@h>=3 | a=2 h=7 | lax.reduce_window(x, 0., lax.add, (1, 3), (1, 2), 'SAME_LOWER')
a, h@h>=3 | a=2 h=7 | grad(lambda v: (window(v, 0., lax.add, (1, 3), (1, 2), 'SAME') ** 2).sum())(x)
a, h@h>=3 | a=2 h=7 | grad(lambda v: (most(v, (1, 3), (1, 2), 'SAME') ** 2).sum())(x)
a, b | a=2 b=6; a=2 b=3 | jnp.fft.fft(x, n=4)
a, b | a=2 b=6; a=2 b=3 | jnp.fft.rfft(x, n=4)
a, b | a=2 b=6; a=2 b=3 | jnp.fft.irfft(x, n=6)
a, b | a=2 b=6 | jnp.fft.fft2(x, s=(4, 4))
a, b | a=2 b=6 | jnp.fft.rfft(x)
a, b | a=2 b=6 | jnp.fft.irfft(x)
a, 6 | a=2 | jnp.fft.fft(x)
4, a | a=2 | jnp.fft.fft(x, axis=0)
a | a=4; a=11; a=5 | jnp.arange(0, 10, x.shape[0])
a | a=4; a=5 | jnp.arange(0, x.shape[0], 2)
a | a=4; a=5 | jnp.arange(x.shape[0], 0, -1)
a | a=4; a=5 | jnp.arange(x.shape[0], 0, -2)
a, b | a=2 b=6; a=3 b=3 | jnp.arange(0, 3 * x.shape[1], x.shape[0])
a | a=4 | jnp.arange(0., x.shape[0])
a | a=4; a=1 | jnp.triu_indices(x.shape[0])
a | a=4; a=1 | jnp.tril_indices(x.shape[0])
a@a>=4 | a=4; a=5 | jnp.tril_indices(x.shape[0], 1)
a@a>=4 | a=4; a=5 | jnp.triu_indices(x.shape[0], -2)
a | a=4 | jnp.triu_indices(x.shape[0], 1)
a, b | a=4 b=3 | jnp.triu_indices(x.shape[0], m=x.shape[1])
a, b | a=2 b=6; a=3 b=1 | lax.top_k(x, x.shape[1])
a, 2*b | a=2 b=3; a=3 b=1 | lax.top_k(x, x.shape[1] // 2)
a, b | a=2 b=6 | lax.top_k(x, x.shape[0])
a, b | a=2 b=6 | lax.top_k(x, x.shape[1] + 1)
a, b@b>=2 | a=2 b=6 | jnp.partition(x, 1)
a, b@b>=2 | a=2 b=6 | jnp.argpartition(x, 1)
a, b | a=4 b=6; a=5 b=2 | jnp.roll(x, x.shape[0] // 2, 0)
a, b | a=4 b=6 | jnp.roll(x, x.shape[1], 0)
a, b | a=4 b=6 | jnp.roll(x, (1, x.shape[0]), (0, 1))
a, b | a=4 b=3; a=1 b=1 | jnp.repeat(x, x.shape[1], 0)
a, b | a=4 b=3 | jnp.repeat(x, x.shape[0])
a, b | a=4 b=3 | jnp.repeat(x, x.shape[1] - 1, 1)
a, b | a=4 b=3; a=3 b=4 | jnp.linalg.svd(x, compute_uv=False)
a, b | a=4 b=3; a=3 b=4 | jnp.linalg.norm(x, 2)
a, b | a=4 b=3 | jnp.linalg.norm(x, 'nuc')
a, b | a=4 b=3 | jnp.linalg.matrix_rank(x)
a, b | a=4 b=3 | jnp.linalg.cond(x)
a, b | a=4 b=3 | jnp.linalg.pinv(x)
a, b | a=4 b=3 | jnp.linalg.qr(x)
a, b@a>=b | a=4 b=3 | jnp.abs(jnp.linalg.qr(x)[1])
a, b | a=4 b=3 | jnp.linalg.inv(x @ x.T + jnp.eye(x.shape[0]))
a, b | a=4 b=3 | jnp.linalg.solve(x @ x.T + jnp.eye(x.shape[0]), x)
a, b | a=4 b=3 | jnp.linalg.det(x @ x.T + jnp.eye(x.shape[0]))
a, b | a=4 b=3 | jax.scipy.linalg.expm(x @ x.T * .01)
a, b | a=4 b=3 | jnp.pad(x, ((0, x.shape[1]), (0, 0)))
a, b | a=4 b=3 | jnp.pad(x, x.shape[0])
a, b | a=4 b=3 | jnp.pad(x, ((1, x.shape[0]),), constant_values=2.)
a, b | a=4 b=3 | jnp.pad(x, ((0, x.shape[0] - 5), (0, 0)))
a, b@a>=2&b>=2 | a=4 b=3 | jnp.pad(x, 1, mode='reflect')
a, b | a=4 b=3 | jnp.pad(x, 1, mode='edge')
a, b | a=4 b=3 | jnp.pad(x, 1, mode='wrap')
a, b | a=4 b=3 | jnp.pad(x, 1, mode='mean')
a, b | a=4 b=3; a=1 b=1 | jnp.std(x, ddof=1)
a, b | a=4 b=3; a=1 b=1 | jnp.var(x, axis=0, ddof=1)
a, b | a=4 b=3 | jnp.var(x, ddof=x.shape[0])
a, b | a=4 b=3; a=4 b=7 | jax.ops.segment_sum(x, jnp.arange(x.shape[0]), x.shape[1])
a, b | a=4 b=3 | jax.ops.segment_max(x, jnp.arange(x.shape[0]), num_segments=x.shape[0])
a, b | a=4 b=3; a=1 b=7 | rng(WORDS, x.shape)
a, b | a=4 b=3 | rng(WORDS, x.shape, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
a, b | a=4 b=3 | jax.random.uniform(jax.random.key(0, impl='rbg'), x.shape)
a, b | a=4 b=3 | jax.random.randint(jax.random.key(0), x.shape, 0, 10)
a, b | a=4 b=3 | jax.random.gamma(jax.random.key(0), 2., x.shape)
a, b | a=4 b=3 | jax.random.poisson(jax.random.key(0), 3., x.shape)
a, b | a=4 b=3 | jax.random.permutation(jax.random.key(0), x)
a, b | a=4 b=3 | jax.random.choice(jax.random.key(0), x.shape[0], (3,))
a, b | a=4 b=3 | jnp.bincount(jnp.arange(x.shape[0]), length=x.shape[1])
a, b | a=4 b=3 | jnp.histogram(x, 5)
a, b | a=4 b=3 | jnp.digitize(x, jnp.arange(3.))
a, b | a=4 b=3 | lax.cumlogsumexp(x, 1, reverse=True)
a, b | a=4 b=3 | lax.associative_scan(jnp.add, x)
a, b | a=4 b=3 | jnp.nonzero(x > 0, size=5)
a, b | a=4 b=3 | jnp.nonzero(x > 0, size=x.shape[0])
a, b | a=4 b=3 | jnp.eye(x.shape[0], x.shape[1], 1)
a, a | a=4 | jnp.diagonal(x)
a, a | a=4 | jnp.diag(x)
a, b | a=4 b=3 | jnp.rot90(x)
a, b | a=4 b=3 | jnp.take(x, jnp.array([0, 1]), 0)
a, b | a=4 b=3 | x[jnp.arange(x.shape[0]), 0]
a, b | a=4 b=3 | x[:, jnp.arange(x.shape[1])[::-1]]
a, b | a=4 b=3 | x.at[:, 1:].add(1.)
a, b | a=4 b=3 | x.at[jnp.arange(x.shape[0]), 0].set(1.)
a, b | a=4 b=3 | x[x.shape[0] - 1]
a, b | a=4 b=3 | x[: x.shape[0] // 2]
a, b | a=4 b=3 | jnp.resize(x, (2, 2))
a, b | a=4 b=3 | jnp.gradient(x[0])
a, b@b>=3 | a=4 b=3; a=4 b=6 | jnp.gradient(x[0])
a, b | a=4 b=3 | jax.image.resize(x, (2 * x.shape[0], x.shape[1]), 'linear')
a, b | a=4 b=3 | jax.grad(jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)).sum()))(x)
a, b | a=4 b=3 | jax.vmap(lambda r: lax.top_k(r, 2))(x)
a, b | a=4 b=3 | lax.scan(lambda c, r: (c + r.sum(), c), 0., x, reverse=True)
a, b | a=4 b=3 | lax.map(lambda r: r.sum(), x, batch_size=2)
a, b | a=4 b=3 | lax.pad(x, 0., ((1, 2, 1), (0, 0, 0)))
a, b | a=4 b=3 | lax.pad(x, 0., ((x.shape[0], 0, 1), (0, 0, 0)))
a, b | a=4 b=3 | lax.gather(x, np.zeros((2, 1), int), ROWS_OF, (1, x.shape[1]))
a, b | a=4 b=3 | lax.dynamic_slice(x, (1, 0), (x.shape[0] - 1, x.shape[1]))
a, b@a>=2 | a=4 b=3 | lax.dynamic_slice(x, (1, 0), (x.shape[0] - 1, x.shape[1]))
a, 8*b | a=4 b=1 | jnp.packbits(x > 0, axis=1)
a, b | a=4 b=3 | jnp.cross(x, x)
a, 3 | a=4 | jnp.cross(x, x[::-1])
a, b | a=4 b=3 | jnp.compress(jnp.arange(4) > 1, x, axis=0, size=2)
a, b | a=4 b=3 | x ** x.shape[0]
a, b | a=4 b=3 | x.T.reshape(-1, x.shape[0])
a, b | a=4 b=3 | x.reshape(x.shape[1], x.shape[0])
a, b | a=4 b=3 | x.reshape(x.shape[0] * x.shape[1], 1)
a, b | a=4 b=3 | x.reshape(2, x.shape[0] // 2, x.shape[1])
2*a, b | a=2 b=3 | x.reshape(2, -1, x.shape[1])
a, b | a=4 b=3 | lax.platform_dependent(x, cpu=lambda v: v + 1, default=lambda v: v)
a, b | a=4 b=3 | jax.vjp(lambda v: v @ v.T, x)[1](jnp.ones((x.shape[0], x.shape[0])))
a, b | a=4 b=3 | lax.ragged_dot(x, jnp.ones((2, x.shape[1], 3)), jnp.array([2, 2]))
a, b | a=4 b=3 | jnp.piecewise(x, [x < 0], [lambda v: -v, lambda v: v])
a, b | a=4 b=3 | jnp.polyval(jnp.ones(3), x)
a, b | a=2 b=5; a=1 b=1 | lax.reduce_window(x, 0., lax.add, (1, x.shape[1]), (1, 1), 'VALID')
a | a=5; a=4 | jnp.fft.fftfreq(x.shape[0])
a | a=5; a=1 | jnp.linspace(0, 1, x.shape[0] + 1)
a | a=5 | np.arange(3) * x.shape[0]
a | a=5 | x.shape[0] - np.arange(3)
a | a=5 | np.float32(2) * x.shape[0]
a | a=5 | jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2), x.shape)
a, b | a=4 b=3; a=5 b=2 | x.at[::2].set(0.)
a, b | a=4 b=3; a=5 b=2 | x.at[::-2].set(jnp.arange(x.shape[1]))
a, b | a=4 b=3; a=5 b=7 | x.at[:, ::-3].set(jnp.arange((x.shape[1] + 2) // 3))
a, b | a=4 b=3; a=1 b=1 | jnp.insert(x, 1, 5., axis=0)
a, b | a=4 b=3; a=1 b=1 | jnp.insert(x, jnp.array([0, 2, 2]), 5., axis=1)
a, b | a=4 b=3; a=5 b=2 | jnp.unravel_index(jnp.array([3, 5, -1]), x.shape)
a, b@a>=2 | a=4 b=3; a=2 b=1 | jnp.unstack(x[:2])
a, b | a=4 b=3; a=9 b=2 | jax.random.choice(jax.random.key(0), x, (2,))
a, b | a=4 b=3; a=1 b=2 | jax.random.dirichlet(jax.random.key(0), jnp.abs(x) + 1)
a, b | a=4 b=3; a=1 b=2 | jax.random.gamma(jax.random.key(0), jnp.abs(x) + 1)
a, b | a=4 b=3; a=1 b=2 | grad(lambda v: jnp.sum(jnp.sort(v, 0) * x))(x)
a, b | a=4 b=3; a=5 b=2 | jnp.nanpercentile(x, 30, axis=0)
a | a=4; a=1 | jax.scipy.linalg.toeplitz(x)
"""
ROWS = [tuple(part.strip() for part in row.split(" | ")) for row in ROWS.strip().splitlines()]


def exported(f, *shapes, constraints=()):
    scope = export.SymbolicScope(constraints)
    return export.export(jax.jit(f))(*[jax.ShapeDtypeStruct(
        export.symbolic_shape(s, scope=scope), np.float32) for s in shapes])


def arguments(shapes, sizes):
    known = {k: int(v) for k, v in (pair.split("=") for pair in sizes.split())}
    return [np.random.RandomState(i).randn(*eval(f"({s},)", dict(known))).astype("f")
            for i, s in enumerate(shapes)]


def answer(spec, sizes, body):
    """Return a program's types and what it gives of each of the sizes, or the classes of its error.
    """
    shapes, _, constraints = spec.partition("@")
    shapes = [s.strip() for s in shapes.split(";")]
    names = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "export": export, "grad": jax.grad,
             "conv": lax.conv_general_dilated, "window": lax.reduce_window,
             "most": lambda x, *how: lax.reduce_window(x, -np.inf, lax.max, *how),
             "rng": lax.rng_bit_generator, "WORDS": np.zeros(4, np.uint32),
             "NHWC": ("NHWC", "HWIO", "NHWC"), "K": np.ones((3, 3, 3, 2), np.float32),
             "L": np.arange(3, dtype=np.float32)[None, None],
             "ROWS_OF": lax.GatherDimensionNumbers((1,), (0,), (0,))}
    f = eval(f"lambda {', '.join('xy'[:len(shapes)])}: {body}", names)
    try:
        made = exported(f, *shapes, constraints=[c for c in constraints.split("&") if c])
        results = [str(made.out_avals)]
        for one in sizes.split(";"):
            leaves = jax.tree.leaves(made.call(*arguments(shapes, one)))
            results.append([np.asarray(leaf) for leaf in leaves])
        return results
    except Exception as error:
        return [cls.__name__ for cls in type(error).__mro__]


def test_rows(jax_oracle):
    def program(rows):
        return [answer(*row) for row in rows]

    wanted = jax_oracle.run(source_of(program), rows=[list(row) for row in ROWS]).value
    wrong = []
    for row, want in zip(ROWS, wanted, strict=True):
        got = answer(*row)
        if "Exception" in want or "Exception" in got:
            known = [n for n in want if isinstance(n, str) and (
                hasattr(builtins, n) or n.startswith("Inconclusive"))]
            if not known or known[0] not in got:
                wrong.append(f"{row}: gave {got}, JAX {want}")
        elif got[0] != want[0]:
            wrong.append(f"{row}: of types {got[0]}, JAX {want[0]}")
        else:
            for mine, theirs in zip(got[1:], want[1:], strict=True):
                for x, y in zip(mine, theirs, strict=True):
                    same = (x.shape, x.dtype) == (y.shape, y.dtype) and np.allclose(
                        x, y, 1e-5, 1e-5, equal_nan=True)
                    wrong += [] if same else [f"{row}: gave {x}, JAX {y}"]
    print(f"{len(ROWS)} programs with open sizes")
    assert not wrong, "\n".join(wrong)


# Shapes, sizes and bodies as above, of what JAX refuses.
MORE = """
a, 1, h@h>=3 | a=2 h=7 | jax.grad(lambda v: (lax.conv(v, K, (2,), 'SAME') ** 2).sum())(x)
a, 1, h@h>=3 | a=2 h=7 | jax.grad(lambda k: (lax.conv(x, k, (2,), 'SAME') ** 2).sum())(K)
a | a=4; a=1 | jnp.diag_indices(x.shape[0])
a, b | a=4 b=3; a=1 b=1 | jnp.pad(x, 1, mode='symmetric')
a, b | a=4 b=3; a=3 b=4 | jnp.diagonal(x)
a, b | a=4 b=3; a=3 b=8 | jnp.packbits(x > 0, axis=1)
a | a=5; a=4 | jnp.fft.rfftfreq(x.shape[0])
a | a=5; a=1 | jnp.geomspace(1, 2, x.shape[0] + 1)
a | a=4; a=1 | jnp.searchsorted(x, 0.5)
a, b@a>=2 | a=4 b=3; a=2 b=9 | jnp.searchsorted(jnp.sort(x[0]), x[1], side='right')
a, b@a>=2 | a=4 b=3; a=2 b=9 | jnp.searchsorted(jnp.sort(x[0]), x[1], method='sort')
a | a=5; a=1 | jax.random.choice(jax.random.key(0), x, (3,), p=jnp.abs(x))
""".strip().splitlines()


@pytest.mark.parametrize("row", MORE)
def test_an_export_gives_what_its_function_gives(row):
    spec, sizes, body = row.split(" | ")
    shape, _, constraint = spec.partition("@")
    names = {"jax": jax, "jnp": jnp, "lax": lax, "K": jnp.arange(3.0)[None, None]}
    f = eval(f"lambda x: {body}", names)
    made = exported(f, shape, constraints=[constraint] if constraint else [])
    for one in sizes.split(";"):
        given = arguments([shape], one)
        wanted = jax.tree.leaves(f(*map(jnp.asarray, given)))
        for got, want in zip(jax.tree.leaves(made.call(*given)), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_size_that_does_not_fit_is_refused_when_called():
    made = exported(lambda x: x.reshape(2, x.shape[0] // 2), "a")
    np.testing.assert_array_equal(made.call(np.arange(4, dtype=np.float32)), [[0, 1], [2, 3]])
    with pytest.raises(RuntimeError, match=r"number of output elements \(4\) doesn't match"):
        made.call(np.arange(5, dtype=np.float32))
    with pytest.raises(TypeError, match=r"cannot reshape array of shape \(a,\)"):
        exported(lambda x: x.reshape(x.shape[0] + 1), "a")


DIMENSIONS = """
a+b; a+1; 1+a; a-b; 2*a; a*b; a*a; a**2; -a; a//2; a%2; a//b; a%b; (a*b)//b; (2*a)//2; (2*a+4)//2
(2*a+3)//2; (a*b)%b; 4*a//2; divmod(a,3); a==a; a==b; a==1; a+1==a; a>=1; a>=0; a>0; a>=2; a>b; a>=b
b>=a; a+1>b; b<=a; a<=0; a>=c; max(a,b); max(a,1); int(a); a//-1; a//0; pow(a,0); a**-1; a//a
(a*a)//a; (a*a+b*a)//a; (a*a+b)//a; a*(b//2); a >= a//2; a//2 >= 0; a%3 <= 2; a%3 >= 3; 2*a >= a
a*b >= a; a*a >= 1; 2*a+1 >= 3; a//2 >= 1; a - a%2 >= 0; (a+3)//3 >= 1; 4*a//4 == a; (a%b) < b
a**9+a//2; a**5+a//2; a**6+a//2; a**6+(a*a)//2; a*b*c*a+a//2; a//2+b//2; (a+b)//2+(c*c*c)//2
(a+1)//2+c//2; (a+1)//2+(c*c)//2; (a+1)//2+(c*a)%3; a//3+a//2; b%3+a//2; a//2+b%3+c//4; a*b+c*c
a*b**2+a**2*b; a//2*b+c//2; (a//2)*(b//2)+c//2*a*a; (3*a)//2+b//2; (-a)//2+b//2; (a+5)//2+(a+1)//2
-a*b+2*c*a-a*a; (a+1)//2 + a%3; 3*(a//2)*b; a-a; a*0; 0//a; 2//a; 2%a; (a+7)//3; (4*a+5)//4
export.symbolic_shape("(2, 3)"); export.symbolic_shape(""); export.symbolic_shape("a,")
export.symbolic_shape("a, ...", like=(1, 2, 3)); export.symbolic_shape("_, b", like=(4, 3))
export.symbolic_shape("_, b"); export.symbolic_shape("a b"); export.symbolic_shape("a +")
export.symbolic_shape("a + 1.5"); export.symbolic_shape("a", constraints=["a == 2*b"])
export.symbolic_shape("a", constraints=["a + b"]); export.symbolic_shape("a", constraints="a>=2")
export.symbolic_shape("a", constraints=["a >= 2"], scope=scope)
export.symbolic_shape(None, like=(2,))
export.symbolic_shape("a//2"); export.symbolic_shape("mod(a, 2), floordiv(a, 2), 2*a - 1")
export.symbolic_shape("max(a, c), min(a, c), max(a, b), min(a, 0)", scope=scope)
a + export.symbolic_shape("a")[0]; a == export.symbolic_shape("a")[0]; export.is_symbolic_dim(a)
export.symbolic_args_specs((x, {"y": x[0]}), ("a, 3", "b")); export.symbolic_args_specs(x, "a, ...")
export.symbolic_args_specs((x, x), ("a, 3", None)); export.symbolic_args_specs(x, "a, 4")
export.SymbolicScope("a >= 1"); jnp.ones(3)[a]
"""
EXPRESSIONS = [e.strip() for e in DIMENSIONS.replace("\n", ";").split(";") if e.strip()]


def told(expressions):
    """Return what each expression of sizes gives, as text, or the classes of its error."""
    scope = export.SymbolicScope(("a >= b",))
    a, b, c = export.symbolic_shape("a, b, c", scope=scope)
    names = {"a": a, "b": b, "c": c, "scope": scope, "x": np.ones((2, 3), np.float32),
             "export": export, "jnp": jnp, "jax": jax, "np": np}
    found = []
    for expression in expressions:
        try:
            found.append(repr(eval(expression, names)))
        except Exception as error:
            found.append([cls.__name__ for cls in type(error).__mro__])
    return found


def test_dimension_expressions_are_simplified_and_compared_as_jaxs(jax_oracle):
    wanted = jax_oracle.run(source_of(told), expressions=EXPRESSIONS).value
    wrong = []
    for expression, want, got in zip(EXPRESSIONS, wanted, told(EXPRESSIONS), strict=True):
        same = got == want
        if isinstance(want, list) and isinstance(got, list):
            same = next(n for n in want if hasattr(builtins, n) or n[:5] == "Incon") in got
        wrong += [] if same else [f"{expression}: {got}, JAX {want}"]
    assert not wrong, "\n".join(wrong)


CONSTRAINED = [
    (["mod(a, 2) == 0"], "2*(a//2); 4*(a//2); -2*(a//2); 3*(a//2); a//2; 2*(a//2) + 1; a//2*b*2;"
     "a//2*(a//2)*4; 2*(a//4); 2*((a+2)//2); a%4; a//2 >= 1; a//2 < a; 2*(a//2) >= a; a >= 2"),
    (["mod(a + b, 3) == 0"], "3*((a + b)//3); 6*((a + b)//3); (a + b)//3; (a + b)//3 >= 1"),
    (["mod(a, 2) == 0", "mod(a, 3) == 0"], "2*(a//2); 3*(a//3); 6*(a//6); a%6"),
    (["floordiv(a, 2) == b"], "a >= 2*b; a >= b; a <= 2*b + 1; a - b >= 1; 3*b >= a; a >= 2; a//2;"
     "a//2*c; a%2; a - b; a > 2*b + 1; -a >= 1; a + b < a; a%2 < a"),
    (["max(a, b) == a"], "a >= b; a - b >= 0; max(a, b); a + b >= 2*b; max(a - b, 0); b > a"),
    (["max(a, b) == c"], "c >= a; c >= b; 2*c; c == a"),
    (["a*b == c"], "a*b*b; 2*a*b; a*a*b; a*a*b*b; c >= 1; a*b*(a//2); c >= a"),
    (["a*a == c"], "a*a*a; a*a*a*a; a*b*a"),
    (["2*a == b"], "2*a; 4*a; 3*a; a"), (["a == b", "b == 3"], "b; a + 1"), (["a + b == c"], "a"),
    (["2*a*b == c"], "2*a*b; 4*a*b; a*b; 2*a*b*c"), (["a == a"], "a"), (["3 == a"], "a"),
    (["a == 5", "a <= 3"], "a"), (["mod(a, 2) == 0", "mod(a, 2) == 1"], "a"),
    ([], "a%-2 >= -1; a%-2 <= 0; a%-2 < b; a//-2 < 0; a//-2 <= -1; a//-2 >= 0;"
     "-a//2 <= -1; a//2 < a; a//3 < a; a//3 >= a; (a*b)//(b+1) >= 0; min(a, b) - max(a, b) <= 0"),
    (["a >= b"], "b//4 < b; b//4 < a; a//b >= 1; min(a, b); a//2 >= b//2; a*b >= b"),
]


@pytest.mark.parametrize(("constraints", "expressions"), CONSTRAINED, ids=str)
def test_constraints_simplify_and_decide_as_jaxs(jax_oracle, constraints, expressions):
    def program(constraints, expressions):
        def shown(expression):
            try:
                return str(eval(expression, names))
            except Exception as error:
                return type(error).__name__

        try:
            a, b, c = export.symbolic_shape("a, b, c", constraints=constraints)
        except ValueError as error:
            return str(error)[:26]
        names = {"a": a, "b": b, "c": c, "max": jax.core.max_dim, "min": jax.core.min_dim}
        return [shown(e) for e in expressions.split(";")]

    asked = {"constraints": constraints, "expressions": expressions}
    assert program(**asked) == jax_oracle.run(source_of(program), **asked).value


CALLS = [
    ("'a, 3'", "lambda x: x.sum(0)", ["(4, 3)", "(4, 5)", "(0, 3)", "4"]),
    ("'a', '2*a+1'", "lambda x, y: x[:, None] + y", ["2, 5", "2, 6"]),
    ("'a', 'b', constraints=['a >= b', 'a <= 8']", "lambda x, y: jnp.concatenate([x, y])",
     ["2, 6", "6, 2", "9, 2"]),
    ("'2*a'", "lambda x: x", ["3", "4", "0"]), ("'a-2'", "lambda x: x", ["0"]),
    ("'a+2'", "lambda x: x", ["2", "3"]), ("'a*b'", "lambda x: x", ["2"]),
    ("'a+b'", "lambda x: x", ["2"]), ("'mod(a,2)'", "lambda x: x", ["1"]),
]


@pytest.mark.parametrize(("shapes", "function", "sizes"), CALLS)
def test_sizes_that_do_not_fit_are_refused(jax_oracle, shapes, function, sizes):
    def program(spec, function, sizes):
        def call(given):
            try:
                one = eval(given)
                shapes = one if isinstance(one, tuple) and not given.startswith("(") else (one,)
                made = exported(f, *shapes_of_f, **more)
                return made.call(*[np.ones(s, "f") for s in shapes]).shape
            except Exception as error:
                return type(error).__name__

        f = eval(function, {"jnp": jnp})
        shapes_of_f, more = eval(f"(lambda *names, **more: (names, more))({spec})")
        return [call(given) for given in sizes]

    asked = {"spec": shapes, "function": function, "sizes": sizes}
    assert program(**asked) == jax_oracle.run(source_of(program), **asked).value


SCOPES = [
    (["a >= b", "b <= 6", "c == 2*b"], lambda a, b: a >= b),
    (["mod(a, 2) == 0"], lambda a, b: a % 2 == 0),
    (["mod(a, 3) == 1", "b >= 2"], lambda a, b: a % 3 == 1 and b >= 2),
    (["mod(a, b) == 0"], lambda a, b: a % b == 0),
    (["floordiv(a, 2) == b"], lambda a, b: a // 2 == b),
    (["max(a, b) == a"], lambda a, b: a >= b),
    (["min(a, 2*b) == a", "3*a >= b"], lambda a, b: a <= 2 * b and 3 * a >= b),
]


@pytest.mark.parametrize(("constraints", "holds"), SCOPES, ids=[", ".join(c) for c, _ in SCOPES])
def test_every_decided_comparison_holds_for_all_sizes(constraints, holds):
    scope = export.SymbolicScope(constraints)
    a, b, c = export.symbolic_shape("a, b, c", scope=scope)
    pool = [a, b, c, a - b, a // 2, 2 * (a // 2), a % 3, a * b, 2 * a - 1, (a + b) // 3, a % b, 5,
            0, a // -2, a % -3, -b // 2, b * (a // b), 3 * (a // 3),
            *export.symbolic_shape("max(a, 3), min(a, 4), max(a - b, 1)", scope=scope)]
    every = [{"a": a, "b": b, "c": 2 * b} for b in range(1, 7) for a in range(1, 13) if holds(a, b)]
    values = {size: [size.evaluate(sizes) if isinstance(size, Dim) else size for sizes in every]
              for size in pool}
    decided = 0
    for left in pool:
        assert all(lower(left) <= value for value in values[left])
        for right in pool:
            try:
                answer = left >= right
            except InconclusiveDimensionOperation:
                continue
            decided += 1
            assert all((one >= two) == answer for one, two in zip(values[left], values[right])), (
                left, right)
    assert decided > 100


def struct(*shapes):
    scope = export.SymbolicScope()
    return [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), np.float32) for s in shapes]


def test_derivatives_and_files_keep_their_open_sizes():
    def f(x):
        return jnp.sum(jnp.sin(x) ** 2)

    made = export.export(jax.jit(f))(*struct("a"))
    read = export.deserialize(made.serialize(vjp_order=2))
    for program in (made, read):
        for size in (1, 4):
            x = np.arange(size, dtype="f")
            np.testing.assert_allclose(jax.grad(program.call)(x), jax.grad(f)(x), rtol=1e-5)
            second = jax.grad(lambda v, p=program: jax.grad(p.call)(v).sum())(x)
            np.testing.assert_allclose(second, 2 * np.cos(2 * x), rtol=1e-4)
    assert str(read.vjp().out_avals) == "(ShapedArray(float32[a]),)"


def test_constraints_are_kept_in_files():
    scope = export.SymbolicScope(["a >= 3", "mod(a, 2) == 0"])
    shape = export.symbolic_shape("a, 2", scope=scope)
    made = export.export(jax.jit(lambda x: x[:3]))(jax.ShapeDtypeStruct(shape, np.float32))
    read = export.deserialize(made.serialize())
    assert read.call(np.ones((4, 2), "f")).shape == (3, 2)
    for size in (2, 5):
        with pytest.raises(ValueError, match="constraint"):
            read.call(np.ones((size, 2), "f"))


def test_an_exported_program_is_called_with_the_sizes_of_another():
    inner = export.export(jax.jit(lambda x, y: x[:, None] * y))(*struct("a", "2*a + 1"))
    outer = export.export(jax.jit(lambda x, y: inner.call(x, y) + 1))(*struct("2*b", "4*b + 1"))
    assert str(outer.out_avals) == "(ShapedArray(float32[2*b,4*b + 1]),)"
    x, y = np.arange(4, dtype="f"), np.arange(9, dtype="f")
    np.testing.assert_allclose(outer.call(x, y), x[:, None] * y + 1)
    with pytest.raises(ValueError, match=r"4\*b"):
        export.export(jax.jit(inner.call))(*struct("2*b", "4*b"))


def test_another_process_calls_with_its_own_sizes(tmp_path):
    made = export.export(jax.jit(lambda x: jnp.cumsum(x) / x.shape[0]))(*struct("a"))
    file = tmp_path / "program"
    file.write_bytes(made.serialize())
    script = ("import sys, numpy as np; from saem import export\n"
              "e = export.deserialize(open(sys.argv[1], 'rb').read())\n"
              "print(*[e.call(np.ones(n, 'f'))[-1] for n in (1, 5)])")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True,
                           text=True, env=environment, check=True)
    assert found.stdout.split() == ["1.0", "1.0"]


def test_scopes_do_not_mix():
    one, two = struct("a")[0], struct("a")[0]
    with pytest.raises(ValueError, match="mixing of symbolic scopes"):
        export.export(jax.jit(jnp.add))(one, two)


def test_a_size_is_a_value_only_inside_an_exported_program():
    a, = export.symbolic_shape("a")
    with pytest.raises(NotImplementedError, match="outside an exported program"):
        jnp.asarray(a)
    printed = str(jax.make_jaxpr(lambda x: x * x.shape[0])(jax.ShapeDtypeStruct((a,), "f")))
    assert "dim_as_value[dim=a]" in printed
