"""What is measured beside other engines that run eagerly: MLX on the CPU, autograd, and NumPy?

Each library has its own words for the same work, and every statement ends with the wait for its
result: what a learner at the prompt waits for.  A library without the operation has no text.

Read before: ``rows.py``.  Read after: ``bench.py``.
Invariant: the texts of one row compute the same numbers, which are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

LIBRARIES = ("saem", "mlx", "autograd", "numpy")


@dataclass(frozen=True)
class PeerRow:
    """One line of the second table.

    `texts` has for each library a setup and a statement; `values`, an expression whose value all
    must agree on. `goal` is the largest ratio of Saem's time to that of the library `beside`.
    """

    name: str
    texts: dict[str, tuple[str, str]]
    values: dict[str, str]
    beside: str = ""
    goal: float = 0.0
    each: str = ""
    rounds: int = 0

    def text(self, library: str) -> tuple[str, str]:
        """Setup and statement in a library."""
        return self.texts[library]


VECTORS = {
    "saem": "x = jnp.arange(1000, dtype=jnp.float32) / 1000; y = x + 1\n",
    "mlx": "x = mx.arange(1000, dtype=mx.float32) / 1000; y = x + 1\n",
    "autograd": "x = onp.arange(1000, dtype=onp.float32) / 1000; y = x + 1\n",
    "numpy": "x = np.arange(1000, dtype=np.float32) / 1000; y = x + 1\n",
}
NUMPY_OF = {"saem": "jnp", "mlx": "mx", "autograd": "np", "numpy": "np"}

# Ten operations in one expression.
TEN = "def ten(x, y): return ((x + y) * x - y / (x + 2.0) + {np}.sin(x)) * y - x * y + 1.0\n"
SQUARES = "def loss(x): return {np}.sum(x ** 2)\nv = {np}.ones(1000, dtype={np}.float32)\n"

# A network of 784, 128 and 10 units on a batch of 128 images.
NETWORK = """
import numpy
draw = numpy.random.RandomState(0)
def given(*shape): return (draw.rand(*shape).astype("float32") - 0.5) / 10
numbers = [given(784, 128), given(128), given(128, 10), given(10)]
image_numbers = given(128, 784) * 10
label_numbers = numpy.eye(10, dtype="float32")[draw.randint(0, 10, 128)]
"""
LOSS = """
params = [asarray(n) for n in numbers]
images, labels = asarray(image_numbers), asarray(label_numbers)
def loss(params):
    w1, b1, w2, b2 = params
    scores = {np}.tanh(images @ w1 + b1) @ w2 + b2
    logs = scores - {np}.log({np}.sum({np}.exp(scores), axis=1, keepdims=True))
    return -{np}.mean({np}.sum(logs * labels, axis=1))
"""
ASARRAY = {"saem": "asarray = jnp.asarray", "mlx": "asarray = mx.array",
           "autograd": "asarray = onp.asarray"}


def setups(text: str, *libraries: str) -> dict[str, str]:
    """The vectors and `text` in the words of each library."""
    return {name: VECTORS[name] + text.format(np=NUMPY_OF[name]) for name in libraries}


def texts(setup: dict[str, str], statements: dict[str, str]) -> dict[str, tuple[str, str]]:
    return {name: (setup[name], statement) for name, statement in statements.items()}


_ten = setups(TEN, "saem", "mlx", "autograd", "numpy")
_squares = setups(SQUARES, "saem", "mlx", "autograd")
_network = {name: f"{NETWORK}{ASARRAY[name]}\n{LOSS.format(np=NUMPY_OF[name])}"
            for name in ("saem", "mlx", "autograd")}

PEER_ROWS = (
    PeerRow(
        "x + y of 1,000 numbers",
        texts(VECTORS, {"saem": "(x + y).block_until_ready()", "mlx": "mx.eval(x + y)",
                        "autograd": "x + y", "numpy": "x + y"}),
        dict.fromkeys(LIBRARIES, "x + y"),
    ),
    PeerRow(
        "ten operations in one expression",
        texts(_ten, {"saem": "ten(x, y).block_until_ready()", "mlx": "mx.eval(ten(x, y))",
                     "autograd": "ten(x, y)", "numpy": "ten(x, y)"}),
        dict.fromkeys(LIBRARIES, "ten(x, y)"), "mlx", 1.2,
    ),
    PeerRow(
        "grad of sum(x ** 2)",
        texts(_squares, {"saem": "jax.grad(loss)(x).block_until_ready()",
                         "mlx": "mx.eval(mx.grad(loss)(x))", "autograd": "ag.grad(loss)(x)"}),
        {"saem": "jax.grad(loss)(x)", "mlx": "mx.grad(loss)(x)", "autograd": "ag.grad(loss)(x)"},
        "autograd", 1.0,
    ),
    PeerRow(
        "Hessian-vector product",
        texts(_squares, {
            "saem": "jax.block_until_ready(jax.jvp(jax.grad(loss), (x,), (v,)))",
            "mlx": "mx.eval(*mx.jvp(mx.grad(loss), [x], [v])[1])",
            "autograd": "ag.hessian_vector_product(loss)(x, v)"}),
        {"saem": "jax.jvp(jax.grad(loss), (x,), (v,))[1]",
         "mlx": "mx.jvp(mx.grad(loss), [x], [v])[1][0]",
         "autograd": "ag.hessian_vector_product(loss)(x, v)"}, "autograd", 1.0,
    ),
    PeerRow(
        "gradient of a 784-128-10 network",
        texts(_network, {"saem": "jax.block_until_ready(jax.grad(loss)(params))",
                         "mlx": "mx.eval(mx.grad(loss)(params))",
                         "autograd": "ag.grad(loss)(params)"}),
        {"saem": "jax.grad(loss)(params)[3]", "mlx": "mx.grad(loss)(params)[3]",
         "autograd": "ag.grad(loss)(params)[3]"}, "autograd", 1.2,
    ),
    PeerRow(
        "first result of a new compiled function",
        {"saem": (VECTORS["saem"] + "import itertools; number = itertools.count(1000)",
                  "jax.block_until_ready(jax.jit(lambda x: jnp.sum(jnp.sin(x)) + n)(x))"),
         "mlx": (VECTORS["mlx"] + "import itertools; number = itertools.count(1000)",
                 "mx.eval(mx.compile(lambda x: mx.sum(mx.sin(x)) + n)(x))")},
        {"saem": "jnp.sum(jnp.sin(x))", "mlx": "mx.sum(mx.sin(x))"}, each="n = next(number)",
    ),
)
