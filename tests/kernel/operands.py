"""What does every function of two operands give for every kind of operand, in every context?

This text runs twice: here, with ``jax``, ``jnp``, ``lax`` being Saem's, and in a second process,
with JAX's.  It names functions, kinds of operands and contexts, and describes what comes out.

Read before: ``oracle.py``.  Read after: ``test_operands.py``.
Invariant: the names ``jax, jnp, lax, np, ml_dtypes`` are given by whoever runs the text, which
imports nothing itself.
"""

# ruff: noqa: F821
import builtins
import operator
import warnings

# -- functions -------------------------------------------------------------------------------------

SYMBOLS = ("add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift "
           "eq ne lt le gt ge").split()
NAMED = """
    add subtract multiply divide true_divide floor_divide mod remainder fmod divmod power pow
    float_power arctan2 hypot maximum minimum fmax fmin logaddexp logaddexp2 heaviside copysign
    nextafter ldexp logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift
    right_shift equal not_equal less less_equal greater greater_equal isclose allclose array_equal
    dot vdot inner outer matmul kron tensordot vecdot gcd lcm append polyval
""".split()


def functions():
    """Return every function of two operands by its name."""
    table = {symbol.strip("_"): getattr(operator, symbol) for symbol in SYMBOLS}
    table["divmod"] = divmod
    table.update({f"jnp.{name}": getattr(jnp, name) for name in NAMED})
    table.update({
        "jnp.where": lambda x, y: jnp.where(np.array([True, False, True]), x, y),
        "jnp.where of two": lambda x, y: jnp.where(x, y, y),
        "jnp.clip": lambda x, y: jnp.clip(x, y, y),
        "jnp.clip below": lambda x, y: jnp.clip(x, y),
        "jnp.select": lambda x, y: jnp.select([True], [x], y),
        "jnp.stack": lambda x, y: jnp.stack([x, y]),
        "jnp.linspace": lambda x, y: jnp.linspace(x, y, 3),
        "jnp.full_like": jnp.full_like,
        "jnp.result_type": lambda x, y: jnp.zeros(2, jnp.result_type(x, y)),
        "at.set": lambda x, y: jnp.asarray(x).at[...].set(y),
        "at.add": lambda x, y: jnp.asarray(x).at[0].add(y),
        "abs of sub": lambda x, y: abs(x - y),
        "round of mul": lambda x, y: round(x * y),
        "neg of add": lambda x, y: -(x + y),
        "pos of sub": lambda x, y: +(x - y),
        "invert of xor": lambda x, y: ~(x ^ y),
        "add to": _add_to,
    })
    return table


def _add_to(x, y):
    x += y
    return x


UNARY = """
    abs absolute angle arccos arccosh arcsin arcsinh arctan arctanh around bitwise_count bitwise_not
    cbrt ceil conj cos cosh deg2rad exp exp2 expm1 fabs floor frexp i0 imag invert iscomplex
    isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not modf nan_to_num
    negative positive rad2deg real reciprocal rint round sign signbit sin sinc sinh spacing sqrt
    square tan tanh trunc sum prod mean max min any all argmax cumsum cumprod var std median ptp
    sort argsort unique diff ravel transpose zeros_like ones_like empty_like asarray array copy
    atleast_1d flip roll trace count_nonzero nansum nanmax nonzero
""".split()


def unary_functions():
    """Return every function of one operand by its name."""
    table = {f"jnp.{name}": getattr(jnp, name) for name in UNARY}
    table["jnp.roll"] = lambda x: jnp.roll(x, 1)
    table["jnp.trace"] = lambda x: jnp.trace(jnp.broadcast_to(x, (3, 3)))
    table["jnp.unique"] = lambda x: jnp.unique(x, size=2)
    table["jnp.nonzero"] = lambda x: jnp.nonzero(x, size=2)
    table["jnp.round to one"] = lambda x: jnp.round(x, 1)
    table.update({
        "neg": operator.neg, "pos": operator.pos, "abs": abs, "invert": operator.invert,
        "round": lambda x: jnp.asarray(x).__round__(), "square": lambda x: x ** 2,
        "cube": lambda x: x ** 3, "inverse": lambda x: x ** -1, "root": lambda x: x ** 0.5,
        "first": lambda x: jnp.asarray(x)[..., None][0], "astype": lambda x: jnp.asarray(x).astype(
            "float16"),
        "lax.abs": lax.abs, "lax.sign": lax.sign, "lax.neg": lax.neg, "lax.exp": lax.exp,
        "lax.integer_pow": lambda x: lax.integer_pow(x, 2),
        "lax.convert": lambda x: lax.convert_element_type(x, "int32"),
        "lax.reduce_precision": lambda x: lax.reduce_precision(x, 8, 7),
    })
    return table


# -- kinds of operands -----------------------------------------------------------------------------

PYTHON = {"bool": (True, False), "int": (2, 3), "float": (1.5, 0.25), "complex": (1 + 2j, 2 - 1j)}
STRONG = ("bool_ int8 uint8 int16 uint16 int32 uint32 bfloat16 float16 float32 complex64 "
          "int4 uint4 float8_e4m3fn float8_e5m2").split()
WEAK = ("int32", "float32", "complex64")
NUMPY = ("bool_ int8 uint32 int32 int64 bfloat16 float16 float32 float64 complex64 "
         "complex128").split()
SHAPES = ((), (3,), (3, 3))
KINDS = (*PYTHON, *(f"weak {t}" for t in WEAK), *(f"array {t}" for t in STRONG),
         *(f"np {t}" for t in NUMPY), "key")
NUMBERS = ((3, 1, 2), (2, 1, 4))


def dtype_called(name):
    return np.dtype(getattr(ml_dtypes, name, None) or getattr(np, name))


def operand(kind, place, form):
    """Return the operand of ``kind`` for the left (0) or right (1) place; ``form`` is its rank."""
    if kind in PYTHON:
        return PYTHON[kind][place]
    if kind == "key":
        return jax.random.key(place)
    family, name = kind.split()
    numbers = np.array(NUMBERS[place])
    if form == 2:
        numbers = numbers + np.array([[0], [1], [0]])
    dtype = dtype_called(name)
    numbers = (numbers % 2 == 1) if name == "bool_" else numbers
    if dtype.kind == "c":
        numbers = numbers + 1j
    value = numbers.astype(dtype) if form else np.asarray(numbers[0]).astype(dtype)
    if family == "np":  # a scalar in place of an array of rank 2
        return value.reshape(-1)[0] if form == 2 else value
    if family == "weak":
        return weak(value)
    return jnp.asarray(value)


def weak(value):
    """Return a weak array of these numbers."""
    if not value.shape:
        return jnp.asarray(value.item())
    return jnp.stack([weak(row) for row in value])


# -- contexts --------------------------------------------------------------------------------------


def is_moving(x):
    """Return whether ``x`` has derivatives."""
    return jnp.issubdtype(jnp.result_type(x), np.inexact)


def scalar_of(value):
    """Return one real number made of all that a function gave."""
    leaves = [leaf for leaf in jax.tree.leaves(value) if is_moving(leaf)]
    total = jnp.float32(0)
    for leaf in leaves:
        total += jnp.real(jnp.sum(leaf)).astype("float32")
    return total


def axis_of(x):
    return 0 if jnp.ndim(x) else None


def eager(f, x, y):
    return f(x, y)


def jit_arguments(f, x, y):
    return jax.jit(f)(x, y)


def jit_left(f, x, y):
    return jax.jit(lambda x: f(x, y))(x)


def jit_right(f, x, y):
    return jax.jit(lambda y: f(x, y))(y)


def jit_closed(f, x, y):
    return jax.jit(lambda: f(x, y))()


def jvp_left(f, x, y):
    return jax.jvp(lambda x: f(x, y), (x,), (x,))


def jvp_right(f, x, y):
    return jax.jvp(lambda y: f(x, y), (y,), (y,))


def jvp_both(f, x, y):
    return jax.jvp(f, (x, y), (x, y))


def grad_left(f, x, y):
    return jax.grad(lambda x: scalar_of(f(x, y)))(x)


def grad_right(f, x, y):
    return jax.grad(lambda y: scalar_of(f(x, y)))(y)


def vmap_left(f, x, y):
    return jax.vmap(lambda x: f(x, y), in_axes=axis_of(x), axis_size=3)(x)


def vmap_right(f, x, y):
    return jax.vmap(lambda y: f(x, y), in_axes=axis_of(y), axis_size=3)(y)


def vmap_both(f, x, y):
    return jax.vmap(f, in_axes=(axis_of(x), axis_of(y)), axis_size=3)(x, y)


def scan_left(f, x, y):
    return lax.scan(lambda x, _: (x, f(x, y)), x, None, length=2)


def scan_right(f, x, y):
    return lax.scan(lambda y, _: (y, f(x, y)), y, None, length=2)


def cond_both(f, x, y):
    return lax.cond(True, f, lambda x, y: f(x, y), x, y)


def while_left(f, x, y):
    return lax.fori_loop(0, 2, lambda i, x: f(x, y), f(f(x, y), y))


_CONTEXTS = (eager, jit_arguments, jit_left, jit_right, jit_closed, jvp_left, jvp_right, jvp_both,
             grad_left, grad_right, vmap_left, vmap_right, vmap_both, scan_left, scan_right,
             cond_both, while_left)
CONTEXTS = {context.__name__: context for context in _CONTEXTS}


# -- answers ---------------------------------------------------------------------------------------


def describe(value):
    """Return dtype, shape and weakness of what a function gave, as text."""
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(describe, value)) + ")"
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        return f"Python {type(value).__name__}"
    if not hasattr(value, "dtype"):
        return type(value).__name__
    star = "*" if getattr(value, "weak_type", False) else ""
    numpy = "np " if isinstance(value, (np.ndarray, np.generic)) else ""
    shape = ",".join(map(str, value.shape))
    return f"{numpy}{value.dtype}[{shape}]{star}"


def refusal(error):
    """Return the names of the classes of an error that a program can catch."""
    names = [c.__name__ for c in type(error).__mro__]
    return "!" + " ".join(n for n in names if hasattr(builtins, n) or hasattr(jax.errors, n))


functions_by_name = {}
operands_by_name = {}


def operand_called(*name):
    """Return an operand, made once; NumPy's arrays anew, since ``x += y`` changes them."""
    if name[0].startswith("np "):
        return operand(*name)
    if name not in operands_by_name:
        operands_by_name[name] = operand(*name)
    return operands_by_name[name]


def of(case):
    """Return the call of a case, ``context|function|left|right|ranks``: a function of nothing."""
    context, name, left, right, forms = case.split("|")
    if not functions_by_name:
        functions_by_name.update(functions())
        functions_by_name.update({f"{name}(x)": (lambda x, y, f=f: f(x))
                                  for name, f in unary_functions().items()})
    f = functions_by_name[name]
    x, y = operand_called(left, 0, int(forms[0])), operand_called(right, 1, int(forms[1]))
    return lambda: CONTEXTS[context](f, x, y)


def types(cases):
    """Return for each case the types of its result, found without numbers, or the refusal."""
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases:
            call = of(case)
            try:
                out.append(describe(jax.eval_shape(call)))
            except Exception as error:
                out.append(refusal(error))
    return "\n".join(out)


def values(cases):
    """Return for each case the types of its result and its numbers, or the refusal."""
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases:
            call = of(case)
            try:
                value = call()
                out.append((describe(value), [plain(leaf) for leaf in jax.tree.leaves(value)]))
            except Exception as error:
                out.append((refusal(error), []))
    return out


def plain(leaf):
    """Return the numbers of a leaf in a dtype that NumPy compares."""
    if not hasattr(leaf, "dtype"):
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    if array.dtype == jax.dtypes.float0 or (array.dtype.kind in "biufc" and array.dtype.isnative \
            and hasattr(np, array.dtype.name)):
        return array
    return array.astype("float32")
