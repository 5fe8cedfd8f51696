"""What does one line of a program give, in words that two processes can compare?

This text runs twice: here, with ``jax`` and ``jnp`` being Saem's, and in a second process, with
JAX's.  A line is an expression over the values below; its answer is described as dtype, shape,
weakness and numbers, or as the classes of its error.

Read before: ``oracle.py``.  Read after: ``numpy/test_arguments.py``.
Invariant: the names ``jax, jnp, lax, np, ml_dtypes`` are given by whoever runs the text.
"""

# ruff: noqa: F821
import builtins
import copy
import enum
import typing
import warnings


class Holder:
    """A class of the user's that holds an array."""

    def __init__(self, held):
        self.held = held

    def __jax_array__(self):
        return jnp.asarray(self.held)


class Pair(typing.NamedTuple):
    """A tuple with operators of its own."""

    x: typing.Any

    def __rmul__(self, other):
        return ("rmul",)

    def __radd__(self, other):
        return ("radd",)

    def __mul__(self, other):
        return ("mul",)


class Number(enum.IntEnum):
    THREE = 3


def values():
    """Return the values that lines may use, by name."""
    x = jnp.arange(6.0).reshape(2, 3)
    i = jnp.arange(6).reshape(2, 3)
    key = jax.random.key(0)
    return {
        "x": x, "i": i, "b": i > 2, "z": x + 1j * x, "h": x.astype("float16"),
        "r3": jnp.arange(24.0).reshape(2, 3, 4), "e": jnp.zeros((0, 3)), "key": key,
        "keys": jax.random.split(key, 3), "weak": jnp.stack([jnp.asarray(1.0)] * 3),
        "NX": np.ones((2, 3), "float32"), "N1": np.ones(3, "float32"),
        "strict": under(jax.numpy_dtype_promotion, "strict"),
        "ranked": under(jax.numpy_rank_promotion, "raise"),
        "Holder": Holder, "Pair": Pair, "Number": Number, "copy": copy,
        "jax": jax, "jnp": jnp, "lax": jax.lax, "np": np,
    }


def under(setting, value):
    """Return what calls a function under a setting."""
    def run(fun):
        with setting(value):
            return fun()
    return run


def described(value):
    if isinstance(value, (tuple, list)) and type(value).__module__ == "builtins":
        return type(value).__name__ + "(" + ", ".join(map(described, value)) + ")"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(described, value)) + ")"
    if not (hasattr(value, "dtype") and hasattr(value, "shape")) or isinstance(value, type):
        return f"{type(value).__name__}: {value!r}"
    kind = "numpy" if isinstance(value, (np.ndarray, np.generic)) else "array"
    numbers = jax.random.key_data(value) if str(value.dtype).startswith("key") else value
    numbers = np.asarray(numbers)
    if numbers.dtype.kind == "V":
        numbers = numbers.astype("float32")
    if numbers.dtype.kind in "fc":
        numbers = np.round(numbers.astype("complex128" if numbers.dtype.kind == "c" else "float64"),
                           4) + 0
    star = "*" if getattr(value, "weak_type", False) else ""
    return f"{kind} {value.dtype}{list(value.shape)}{star} {numbers.tolist()}"


def answers(lines):
    """Return for each line what it gives, or ``!`` and the classes of its error."""
    found = []
    for line in lines:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(described(eval(line, values())))
            except Exception as error:
                names = [c.__name__ for c in type(error).__mro__]
                found.append("!" + " ".join(
                    n for n in names if hasattr(builtins, n) or hasattr(jax.errors, n)))
    return found
