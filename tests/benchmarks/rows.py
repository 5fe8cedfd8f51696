"""What is measured, and what is the goal?

Every row of the goals' table (README.md beside this file) is data here: Python text that runs
unchanged on Saem (``import saem as jax``) and on the real JAX, and where NumPy has the operation, a
text for NumPy.  To add a row, add one `Row`.

Read before: README.md, ``programs.py``.  Read after: ``worker.py``, which runs a row.
Invariant: both sides run the same text, and where a row has a `value`, it must agree on both.
"""

from __future__ import annotations

from dataclasses import dataclass

import programs


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `setup` runs once. `each` runs before every single timing and is not timed; a row with `each`
    is timed one statement at a time, others in batches. `goal` is the largest ratio Saem / JAX
    that is good enough. `needs` are attributes of the module `jax` without which the row counts
    as not built. `numpy` and `numpy_setup` are the same work in NumPy. A row with `fresh` is run
    in a new process each time, whose compile cache is off, in an empty folder ("first") or in one
    that the same row has filled ("next"). `rounds`, if not 0, is the most rounds that it is timed.
    """

    name: str
    goal: float
    statement: str
    setup: str = ""
    each: str = ""
    value: str = ""
    needs: tuple[str, ...] = ()
    numpy: str = ""
    numpy_setup: str = ""
    fresh: bool = False
    cache: str = ""
    rounds: int = 0

    def text(self, library: str) -> tuple[str, str]:
        """Setup and statement in a library."""
        if library == "numpy":
            return self.numpy_setup, self.numpy
        return self.setup, self.statement


VECTOR = "x = jnp.arange(1000, dtype=jnp.float32); y = x + 1"
NP_VECTOR = "x = np.arange(1000, dtype=np.float32); y = x + 1"
SQUARES = VECTOR + "\ndef loss(x): return jnp.sum(x ** 2)\nv = jnp.ones_like(x)"

# 3,000 operations: 1,000 rounds of a product, a sum and a sine.
LONG = """
x = jnp.arange(8, dtype=jnp.float32)
def long(x):
    for _ in range({rounds}):
        x = jnp.sin(x * 1.5 + 0.25)
    return x
"""
LONG_3000 = LONG.format(rounds=1000)
LONG_150 = LONG.format(rounds=50)

CHAIN = "def chain(x): return jnp.sum(jnp.tanh(x) * jnp.exp(-x * x) + jnp.sin(x))\n"


def stages(name: str, setup: str, needs: tuple[str, ...], rounds: int = 0) -> tuple[Row, ...]:
    """The rows of one program of ``programs.py``: each step from its text to a finished run.

    `rounds` is the most that are worth waiting for when it is compiled.
    """
    fresh = "lambda *given: step(*given)"
    setup += "\nimport itertools; number = itertools.count(1); f = jax.jit(step); f(*args)"
    return (
        Row(f"trace: {name}", 0.3, "f.trace(*args)", setup, each=f"f = jax.jit({fresh})",
            needs=needs),
        Row(f"lower: {name}", 0.3, "traced.lower()", setup,
            each=f"traced = jax.jit({fresh}).trace(*args)", needs=needs),
        # another constant each time, so that nothing answers from a cache of compiled programs
        Row(f"compile: {name}", 1.0, "lowered.compile()", setup,
            each="n = next(number); again = lambda *given: (step(*given), n)\n"
                 "lowered = jax.jit(again).lower(*args)",
            needs=needs, rounds=rounds),
        Row(f"run: {name}", 1.0, "jax.block_until_ready(f(*args))", setup,
            value="jax.tree_util.tree_leaves(f(*args))[0]", needs=needs),
    )


ROWS = (
    Row("import", 0.4, "import {module}", fresh=True, numpy="import numpy"),
    *(Row(f"introductory session, {kernel} kernel", goal, programs.INTRODUCTION,
          setup="import {module} as jax, {module}.numpy as jnp", fresh=True, cache=kernel, rounds=9)
      for kernel, goal in (("first", 0.5), ("next", 0.1))),
    # calls of a jitted function
    Row(
        "jit call, one array",
        1.0,
        "f(x)",
        setup=VECTOR + "\nf = jax.jit(lambda x: x * 2); f(x)",
        value="f(x)",
        needs=("jit",),
    ),
    Row(
        "jit call, 100-leaf pytree",
        1.0,
        "f(tree)",
        setup=(
            "tree = {f'leaf{i:03}': jnp.arange(4, dtype=jnp.float32) for i in range(100)}\n"
            "f = jax.jit(lambda t: {k: v * 2 for k, v in t.items()}); f(tree)"
        ),
        value="f(tree)['leaf007']",
        needs=("jit",),
    ),
    # eager operations
    Row("x + y", 0.9, "x + y", setup=VECTOR, value="x + y", numpy="x + y", numpy_setup=NP_VECTOR),
    Row("x + 1", 0.9, "x + 1", setup=VECTOR, value="x + 1", numpy="x + 1", numpy_setup=NP_VECTOR),
    Row(
        "jnp.sum(x)",
        0.9,
        "jnp.sum(x)",
        setup=VECTOR,
        value="jnp.sum(x)",
        numpy="np.sum(x)",
        numpy_setup=NP_VECTOR,
    ),
    Row("x[0]", 0.4, "x[0]", setup=VECTOR, value="x[0]", numpy="x[0]", numpy_setup=NP_VECTOR),
    Row(
        "x.reshape(10, 100)",
        0.4,
        "x.reshape(10, 100)",
        setup=VECTOR,
        value="x.reshape(10, 100)",
        numpy="x.reshape(10, 100)",
        numpy_setup=NP_VECTOR,
    ),
    Row(
        "jnp.zeros(1000)",
        0.4,
        "jnp.zeros(1000)",
        value="jnp.zeros(1000)",
        needs=("numpy.zeros",),
        numpy="np.zeros(1000, np.float32)",
    ),
    Row(
        "x.at[0].set(1.)",
        0.4,
        "x.at[0].set(1.)",
        setup=VECTOR,
        value="x.at[0].set(1.)",
        numpy="z = x.copy(); z[0] = 1.",
        numpy_setup=NP_VECTOR,
    ),
    # eager transformations
    Row(
        "eager grad of sum(x**2)",
        0.25,
        "jax.grad(loss)(x)",
        setup=SQUARES,
        value="jax.grad(loss)(x)",
        needs=("grad",),
    ),
    Row(
        "eager vmap",
        0.25,
        "jax.vmap(lambda a: a * 2 + 1)(m)",
        setup=VECTOR + "; m = x.reshape(10, 100)",
        value="jax.vmap(lambda a: a * 2 + 1)(m)",
        needs=("vmap",),
    ),
    Row(
        "eager jvp",
        0.25,
        "jax.jvp(loss, (x,), (v,))",
        setup=SQUARES,
        value="jax.jvp(loss, (x,), (v,))[1]",
        needs=("jvp",),
    ),
    Row(
        "eager Hessian-vector product",
        0.25,
        "jax.jvp(jax.grad(loss), (x,), (v,))",
        setup=SQUARES,
        value="jax.jvp(jax.grad(loss), (x,), (v,))[1]",
        needs=("jvp", "grad"),
    ),
    # eager control flow, with lambdas made anew as in a loop or a cell run again
    Row(
        "eager cond, fresh lambdas",
        0.05,
        "jax.lax.cond(x[0] > 0, lambda a: a + 1, lambda a: a - 1, x)",
        setup=VECTOR,
        value="jax.lax.cond(x[0] > 0, lambda a: a + 1, lambda a: a - 1, x)",
        needs=("lax.cond",),
    ),
    Row(
        "eager scan, fresh lambda",
        0.05,
        "jax.lax.scan(lambda c, a: (c + a, c), 0., x)",
        setup=VECTOR,
        value="jax.lax.scan(lambda c, a: (c + a, c), 0., x)[0]",
        needs=("lax.scan",),
    ),
    Row(
        "eager fori_loop, fresh lambda",
        0.05,
        "jax.lax.fori_loop(0, 10, lambda i, a: a + i, x)",
        setup=VECTOR,
        value="jax.lax.fori_loop(0, 10, lambda i, a: a + i, x)",
        needs=("lax.fori_loop",),
    ),
    # from Python to machine code
    Row(
        "tracing 3,000 operations",
        0.25,
        "jax.make_jaxpr(f)(x)",
        setup=LONG_3000,
        each="f = lambda x: long(x)",
        value="len(jax.make_jaxpr(long)(x).jaxpr.eqns)",
        needs=("make_jaxpr",),
    ),
    Row(
        "lowering 3,000 operations",
        0.3,
        "traced.lower()",
        setup=LONG_3000,
        each="traced = jax.jit(lambda x: long(x)).trace(x)",
        needs=("jit",),
    ),
    Row(
        "XLA compile, 150 operations",
        1.0,
        "lowered.compile()",
        setup=LONG_150 + "import itertools; number = itertools.count(1)",
        # another constant each time, so that nothing answers from a cache of compiled programs
        each="n = next(number); lowered = jax.jit(lambda x: long(x) + n).lower(x)",
        needs=("jit",),
    ),
    Row(
        "first call of a jitted function",
        1.0,
        "jax.block_until_ready(f(x))",
        setup=LONG_150 + "import itertools; number = itertools.count(1)",
        # no other row's program, which would be found by its content
        each="n = next(number); f = jax.jit(lambda x: long(x) - n)",
        needs=("jit", "block_until_ready"),
    ),
    Row(
        "first result: sum of sines",
        0.5,
        "jax.block_until_ready(f(x))",
        setup=VECTOR + "\nimport itertools; number = itertools.count(1)",
        each="n = next(number); f = jax.jit(lambda x: jnp.sum(jnp.sin(x)) + n)",
        needs=("jit", "block_until_ready"),
    ),
    Row(
        "first result: an eager operation",
        0.5,
        "jax.block_until_ready(jnp.sin(x))",
        setup="import itertools; number = itertools.count(1)",
        # another shape each time, so that it is compiled again
        each="x = np.ones(next(number), np.float32)",
        needs=("block_until_ready",),
    ),
    Row(
        "run: elementwise chain, 10^6 numbers",
        1.0,
        "f(x).block_until_ready()",
        setup=CHAIN + "f = jax.jit(chain); x = jnp.linspace(-1, 1, 1_000_000); f(x)",
        value="f(x)",
        needs=("jit", "numpy.linspace"),
        numpy="np.sum(np.tanh(x) * np.exp(-x * x) + np.sin(x))",
        numpy_setup="x = np.linspace(-1, 1, 1_000_000, dtype=np.float32)",
    ),
    Row(
        "run: matrix product, 512 x 512",
        1.0,
        "f(a).block_until_ready()",
        setup=(
            "a = jnp.linspace(-1, 1, 512 * 512).reshape(512, 512)\n"
            "f = jax.jit(lambda a: jnp.dot(a, a)); f(a)"
        ),
        value="f(a)[3, :5]",
        needs=("jit", "numpy.linspace", "numpy.dot"),
        numpy="a @ a",
        numpy_setup="a = np.linspace(-1, 1, 512 * 512, dtype=np.float32).reshape(512, 512)",
    ),
    # random numbers
    Row(
        "random.split",
        0.7,
        "jax.random.split(key)",
        setup="key = jax.random.key(0)",
        value="jax.random.uniform(jax.random.split(key)[0], (3,))",
        needs=("random.key", "random.split"),
    ),
    Row(
        "random.normal, 3 numbers",
        0.7,
        "jax.random.normal(key, (3,))",
        setup="key = jax.random.key(0)",
        value="jax.random.normal(key, (3,))",
        needs=("random.key", "random.normal"),
        numpy="rng.standard_normal(3, dtype=np.float32)",
        numpy_setup="rng = np.random.default_rng(0)",
    ),
    # here most of the time is XLA's, which draws them in the same way on both sides; waited for,
    # since JAX hands the work to a thread, and on two cores Saem does it where it is called
    Row(
        "random.normal, 1,000 numbers",
        0.7,
        "jax.block_until_ready(jax.random.normal(key, (1000,)))",
        setup="key = jax.random.key(0)",
        value="jax.random.normal(key, (1000,))",
        needs=("random.key", "random.normal", "block_until_ready"),
        numpy="rng.standard_normal(1000, dtype=np.float32)",
        numpy_setup="rng = np.random.default_rng(0)",
    ),
    # whole programs
    *stages("gradient of 50 layers", programs.MLP.format(width=32), ("grad",)),
    Row("dispatch: gradient of 50 small layers", 1.0, "f(*args)",
        programs.MLP.format(width=4) + "f = jax.jit(step); f(*args)", needs=("grad",)),
    *stages("12 transformer blocks and back", programs.TRANSFORMER, ("value_and_grad",), 3),
    *stages("scan of 1,000 steps", programs.SCAN, ("lax.scan",)),
    *stages("gradient of that scan", programs.SCAN_GRADIENT, ("lax.scan",)),
    *stages("while_loop of 1,000 steps", programs.WHILE, ("lax.while_loop",)),
    *stages("vmap of a gradient", programs.MAPPED_GRADIENT, ("vmap", "grad")),
    Row("eager vmap of a gradient", 0.25, "step(*args)", programs.MAPPED_GRADIENT,
        value="step(*args)", needs=("vmap", "grad")),
)
