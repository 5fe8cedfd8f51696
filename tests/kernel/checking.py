"""What do the tests of checkify share?  A beginning of source, run on Saem and on JAX.

Read before: ``both.py``.  Read after: ``test_checkify.py``, ``test_checkify_nested.py``.
"""

from __future__ import annotations

from both import same

BEGIN = """
import importlib
jnp = jax.numpy
c = importlib.import_module(jax.__name__ + '.experimental.checkify')
F, I = jnp.float32, jnp.int32
X = jnp.arange(4.)
M = jnp.arange(4.).reshape(2, 2)

def said(f, *args, errors=c.all_checks, jit=False):
    g = c.checkify(f, errors=errors)
    err, out = (jax.jit(g) if jit else g)(*args)
    return err.get() or '', type(err.get_exception()).__name__, jax.tree.leaves(out)

def chk(x, text='bad {}'):
    c.check(jnp.all(x > 0), text, x)
    return x

def ln(x):
    c.check(x > 0, 'ln {}', x)
    return jnp.log(x)

@jax.custom_jvp
def cj(x):
    c.check(x > 0, 'cj {}', x)
    return jnp.sin(x)
@cj.defjvp
def cj_rule(primals, tangents):
    c.check(primals[0] > 5, 'rule {}', primals[0])
    return jnp.sin(primals[0]), 3 * jnp.cos(primals[0]) * tangents[0]

@jax.custom_vjp
def cv(x):
    c.check(x > 0, 'cv {}', x)
    return jnp.sin(x)
def cv_fwd(x):
    c.check(x > 5, 'fwd {}', x)
    return jnp.sin(x), x
def cv_bwd(r, ct):
    c.check(r > 8, 'bwd {}', r)
    return (10 * ct / r,)
cv.defvjp(cv_fwd, cv_bwd)
"""


def same_said(oracle, expression: str, begin: str = "") -> None:
    """Assert that ``expression``, after ``begin``, has one value on Saem and on JAX."""
    same(oracle, f"{BEGIN}{begin}\nresult = {expression}\n")
