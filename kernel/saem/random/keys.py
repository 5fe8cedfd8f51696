"""How are keys made, split and compared, and how does a sampler take one?

A key is used once: ``split`` gives new ones, ``fold_in`` gives one for a number.  Samplers take a
typed key, or the two raw uint32 words of an old-style one.

Read before: ``ops.keys``, ``ops.random_bits``.  Read after: ``random.uniform``.
Invariant: outside traces a sampler is one compiled call on the words of its key; inside, its
primitives take the typed key.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile.dispatch import put_made
from saem.core import config, dtypes, errors
from saem.core.avals import aval_of, is_array_like, represented_aval
from saem.core.dimensions import Dim, as_size, unwrapped
from saem.core.events import bus
from saem.core.promotion import join
from saem.core.trace import eval_trace, is_tracer, runs_at_once, state
from saem.generators.counter_based import GENERATORS
from saem.jit.library import library_function
from saem.numpy.at import IndexUpdateHelper
from saem.numpy.indexing import getitem
from saem.numpy.manipulation import swapaxes
from saem.numpy.methods import contains
from saem.numpy.promote import broadcast_shapes
from saem.numpy.take_and_put import take
from saem.ops.convert import convert_element_type
from saem.ops.keys import Generator, KeyDType, PRNGKeyArray
from saem.ops.keys import key_dtype as dtype_of
from saem.ops.random_bits import (
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_wrap,
)
from saem.ops.reshard import freely
from saem.random import reuse
from saem.typing import Array, ArrayLike, DTypeLike

U32 = np.dtype("uint32")
ArrayImpl = _jaxlib.ArrayImpl


# -- which generator -------------------------------------------------------------------------------


def generator(impl: Any = None) -> Generator:
    """Return the generator named by ``impl``: a name, a key dtype, or None for the default.

    Raises: ValueError for an unknown name, TypeError for another type.
    """
    if isinstance(impl, Generator):
        return impl
    if isinstance(impl, KeyDType):
        return impl.impl
    name = config.default_prng_impl.value if impl is None else impl
    if isinstance(name, str) and name in GENERATORS:
        return GENERATORS[name]
    if not isinstance(name, str):
        raise TypeError(f"unrecognized type {type(name)} for specifying PRNG implementation. "
                        f"Try one of: {', '.join(map(repr, GENERATORS))}")
    raise errors.explained(
        errors.ArgumentError, "key.impl", f'unrecognized PRNG implementation "{name}".',
        advice=f"Did you mean one of: {', '.join(map(repr, GENERATORS))}?")


def key_dtype(impl_spec: Any = None) -> KeyDType:
    """Return the dtype of typed keys of a generator."""
    return dtype_of(generator(impl_spec))


# -- making keys -----------------------------------------------------------------------------------


def _seed_words(seed: Any) -> Any:
    """Return a Python or NumPy integer as its two words, None for other seeds."""
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)):
        return None
    wide = 64 if config.enable_x64.value else 32
    bits = int(np.int64(seed)) if isinstance(seed, int) else int(seed)
    high = (bits >> 32) & 0xFFFFFFFF if wide == 64 and _is_wide(seed) else 0
    return np.asarray([high, bits & 0xFFFFFFFF], U32)


def _is_wide(seed: Any) -> bool:
    return isinstance(seed, int) or seed.dtype.itemsize == 8


def _make(seed: Any, impl: Any, caller: str) -> PRNGKeyArray:
    """Return the typed key of a scalar seed.

    Raises: TypeError for a non-integer scalar.
    """
    impl = generator(impl)
    if isinstance(seed, (bool, np.bool_)):
        seed = np.int32(seed)
    if offset := config.random_seed_offset.value:
        with np.errstate(over="ignore"):  # a seed of few bits wraps around
            seed = seed + offset
    if runs_at_once() and config.shortcuts.value and impl.seed_copies \
            and (words := _seed_words(seed)) is not None:
        return PRNGKeyArray(put_made(np.tile(words, impl.seed_copies)), dtype_of(impl))
    if isinstance(seed, int):
        seed = np.int64(seed).astype(dtypes.default_dtype(int))
    seed = unwrapped(seed)
    aval = aval_of(seed)
    if aval.shape:
        raise errors.explained(
            errors.ArgumentTypeError, "key.C2",
            f"{caller} accepts a scalar seed, but was given an array of shape {aval.shape} != (). "
            "Use jax.vmap for batching", advice=f"jax.vmap(jax.random.{caller})(seeds)")
    return random_seed(seed, impl)


def key(seed: int | ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Return the typed key of an integer ``seed``, from which all random functions draw.

    Raises: TypeError for a non-integer scalar; ValueError for an unknown ``impl``.

    >>> jax.random.key(0).dtype
    key<fry>
    """
    made = _make(seed, impl if dtype is None else dtype, "key")
    if bus.active or config.debug_key_reuse.value:
        reuse.created(made, f"key({seed})")
    return made


def PRNGKey(seed: int | ArrayLike, *, impl: Any = None) -> Array:
    """Return the old-style key of an integer ``seed``: its raw uint32 words (typed if
    ``enable_custom_prng``).

    Raises: as ``key``.

    >>> jax.random.PRNGKey(0)
    Array([0, 0], dtype=uint32)
    """
    made = _make(seed, impl, "PRNGKey")
    if bus.active or config.debug_key_reuse.value:
        reuse.created(made, f"PRNGKey({seed})")
    return made if config.enable_custom_prng.value else key_data(made)


def _held(keys: Any) -> Any:
    """Return ``keys`` as typed keys, whatever their kind.

    Raises: TypeError if they are no keys.
    """
    if type(keys) is PRNGKeyArray:
        return keys
    if keys is None:
        raise errors.explained(
            errors.ArgumentTypeError, "key.C1", f"unexpected PRNG key type {type(keys)}",
            advice="Make a key with jax.random.key(seed).")
    if not is_array_like(keys) or isinstance(keys, dtypes.PYTHON_NUMBERS):
        raise errors.explained(
            errors.ArgumentTypeError, "key.C1",
            "JAX encountered invalid PRNG key data: expected key_data to have ndim, shape, and "
            f"dtype attributes. Got {keys}", advice="Make a key with jax.random.key(seed).")
    if isinstance(aval_of(keys).dtype, KeyDType):
        return keys
    held = random_wrap(keys, generator())
    check_raw_keys_allowed()
    return held


def check_raw_keys_allowed() -> None:
    """Refuse old-style keys, or warn of them, where ``legacy_prng_key`` says so.

    With ``enable_custom_prng``, by which seeds make no such keys, they are always warned of.
    Raises: ValueError.
    """
    if config.enable_custom_prng.value:
        warnings.warn("Raw arrays as random keys to jax.random functions are deprecated where "
                      "jax_enable_custom_prng is set. Wrap them: jax.random.wrap_key_data(words).",
                      FutureWarning, stacklevel=dtypes.depth_of_caller())
    elif config.legacy_prng_key.value != "allow":
        sentence = ("Legacy uint32 key array passed as key to jax.random function. Please create "
                    "keys using jax.random.key().")
        advice = 'If raw keys are meant, set jax_legacy_prng_key="allow".'
        if config.legacy_prng_key.value == "error":
            raise errors.explained(errors.ArgumentError, "key.legacy", sentence, advice=advice)
        warnings.warn(f"{sentence} {advice}", UserWarning, stacklevel=dtypes.depth_of_caller())


def is_typed(keys: Any) -> bool:
    """Return whether ``keys`` have a key dtype."""
    return type(keys) is PRNGKeyArray or isinstance(aval_of(keys).dtype, KeyDType)


def key_data(keys: ArrayLike) -> Array:
    """Return the uint32 words of keys, of shape (*keys.shape, 2), or 4 for ``rbg``.

    >>> jax.random.key_data(jax.random.key(7))
    Array([0, 7], dtype=uint32)
    """
    if type(keys) is PRNGKeyArray and runs_at_once() and config.shortcuts.value:
        return keys._base
    held = _held(keys)
    return random_unwrap(held) if is_typed(keys) else keys


def wrap_key_data(key_bits_array: Array, *, impl: Any = None,
                  dtype: DTypeLike | None = None) -> Any:
    """Return the typed keys whose words are ``uint32`` numbers.

    Raises: TypeError if they are not uint32 words of the right number.

    >>> jax.random.wrap_key_data(jnp.array([0, 7], dtype=jnp.uint32)).dtype
    key<fry>
    """
    made = random_wrap(key_bits_array, generator(impl if dtype is None else dtype))
    if bus.active or config.debug_key_reuse.value:
        reuse.created(made, "wrap_key_data")
    return made


def key_impl(keys: ArrayLike) -> Hashable:
    """Return the name of the generator of ``keys``; the generator itself if a program defined it.

    >>> jax.random.key_impl(jax.random.key(0))
    'threefry2x32'
    """
    return named(aval_of(_held(keys)).dtype.impl)


def named(impl: Generator) -> Hashable:
    """Return that by which ``generator`` finds ``impl``."""
    return impl.name if impl.listed else impl


def clone(key: ArrayLike) -> Any:
    """Return the same key, for a reuse that is meant.

    >>> jax.random.clone(jax.random.key(0)).shape
    ()
    """
    if type(key) is PRNGKeyArray and runs_at_once():
        made = PRNGKeyArray(key._base, key.dtype)
        if bus.active or config.debug_key_reuse.value:
            return reuse.derived("cloned", key, lambda: made)
        return made
    made = random_clone(_held(key))
    return made if is_typed(key) else random_unwrap(made)


# -- methods of key arrays that use functions of arrays --------------------------------------------


def unpickled(base: Any, impl: Hashable) -> PRNGKeyArray:
    """Return the keys of ``PRNGKeyArray.__reduce__``."""
    return PRNGKeyArray(base, dtype_of(generator(impl)))


def _reduce(keys: PRNGKeyArray) -> Any:
    return unpickled, (keys._base, named(keys.dtype.impl))


PRNGKeyArray.__reduce__ = _reduce
PRNGKeyArray.traced_item = lambda keys, index: getitem(keys, index)
PRNGKeyArray.__contains__ = contains
PRNGKeyArray.at = property(IndexUpdateHelper)
PRNGKeyArray.swapaxes = lambda keys, axis1, axis2: swapaxes(keys, axis1, axis2)
PRNGKeyArray.take = lambda keys, *args, **kwargs: take(keys, *args, **kwargs)


# -- taking a key ----------------------------------------------------------------------------------


def _single(name: str, key: Any) -> Any:
    """Return a single key as a typed one.  Raises: ArgumentError for several, TypeError for none.
    """
    typed = _held(key)
    shape = aval_of(typed).shape
    if shape:
        shown = aval_of(key).shape
        raise errors.explained(
            errors.ArgumentError, "key.C3",
            f"{name} accepts a single key, but was given a key array of shape {shown} != (). "
            "Use jax.vmap for batching.",
            advice=f"jax.vmap(jax.random.{name})(keys), or take one of the keys: keys[0].")
    return typed


def takes_any_key(statics: int = 0, gives_keys: bool = False, same_rounding: bool = False,
          called: str = "") -> Callable[[Callable], Callable]:
    """Make ``fun(key, *statics, *operands)`` on a typed key a function on any single key.

    The first ``statics`` arguments after the key are static.  Outside programs it is one compiled
    call, of the words of the key if no argument is a tracer.  ``gives_keys``: results are keys of
    the kind that was given, or typed ones by ``enable_custom_prng``.  ``same_rounding``: as in
    ``library_function``.  ``called`` is its name in errors, by default that of ``fun``.
    """

    def decorate(fun: Callable) -> Callable:
        sampler = Sampler(fun, statics, gives_keys, same_rounding, called)
        compiled = sampler.compiled

        @functools.wraps(fun)
        def run(key: Any, *args: Any) -> Any:
            if (not is_one_call() or not config.shortcuts.value
                    or any(map(is_tracer, (key, *args)))):
                return sampler.on_typed_key(key, *args)
            typed = type(key) is PRNGKeyArray
            words, impl = (key._base, key.dtype.impl) if typed else (key, generator())
            if type(words) is not ArrayImpl or words.aval.shape != impl.key_shape:
                _single(sampler.name, key)
            elif not typed:
                check_raw_keys_allowed()
            out = (compiled.get(impl.name) or sampler.compile(impl))(words, *args)
            if not sampler.gives_typed(typed):
                return out
            return PRNGKeyArray(out, key.dtype if typed else dtype_of(impl))

        return run

    return decorate


class Sampler:
    """A function of a typed key, compiled for typed keys and for the words of each generator."""

    def __init__(self, fun: Callable, statics: int, gives_keys: bool, same_rounding: bool,
                 called: str):
        self.fun, self.gives_keys, self.same_rounding = fun, gives_keys, same_rounding
        self.static_argnums = tuple(range(1, statics + 1))
        self.name = called or fun.__name__.strip("_")
        # By the name of the generator whose words are taken; by None, what takes a typed key.
        self.compiled: dict[str | None, Callable] = {}

    def compile(self, impl: Generator | None) -> Callable:
        """Return the compiled function of the words of a key of ``impl``, or of a typed key."""
        fun = self.fun if impl is None else _on_words(self.fun, impl, self.gives_keys)
        made = library_function(fun, static_argnums=self.static_argnums,
                                same_rounding=self.same_rounding, whole=True)
        return self.compiled.setdefault(impl and impl.name, made)

    def on_typed_key(self, key: Any, *args: Any) -> Any:
        """Run the function of a typed key: as operations in a program, else as one call."""
        typed = _single(self.name, key)
        call = (self.compiled.get(None) or self.compile(None)) if is_one_call() else self.fun
        out = call(typed, *args)
        raw_keys = self.gives_keys and not self.gives_typed(is_typed(key))
        return random_unwrap(out) if raw_keys else out

    def gives_typed(self, typed: bool) -> bool:
        """Return whether results are typed keys, given a ``typed`` key or a raw one."""
        return self.gives_keys and (typed or config.enable_custom_prng.value)


def is_one_call() -> bool:
    """Return whether a sampler is run as one call here.

    Under a transformation its operations show what becomes of keys, if that is watched.
    """
    return state.trace is eval_trace or (
        runs_at_once() and not bus.active and not config.debug_key_reuse.value)


def _on_words(fun: Callable, impl: Generator, gives_keys: bool) -> Callable:
    """Return ``fun``, which takes a typed key, as a function of the words of a key of ``impl``."""

    def by_words(words: Any, *args: Any) -> Any:
        out = fun(random_wrap(words, impl), *args)
        return random_unwrap(out) if gives_keys else out

    by_words.__name__ = by_words.__qualname__ = fun.__name__
    return by_words


def placed(sampler: Callable, out_sharding: Any, key: Any, *rest: Any, **options: Any) -> Any:
    """Return ``sampler(key, *rest)`` with the sharding ``out_sharding``.

    The partitioner decides how it is computed; the numbers do not depend on that.
    """
    arrays = [x for x in rest if hasattr(x, "aval")]

    def draw(key: Any, arrays: list[Any]) -> Any:
        left = iter(arrays)
        return sampler(key, *[next(left) if hasattr(x, "aval") else x for x in rest], **options)

    return freely(draw, out_sharding, sampler.__name__, key, arrays)


def used(key: Any) -> None:
    """Note that a sampler draws from ``key``, for listeners and ``debug_key_reuse``."""
    if bus.active or config.debug_key_reuse.value:
        reuse.sampled(key)


@takes_any_key(1, gives_keys=True)
def _split(key: Any, shape: tuple[int, ...]) -> Any:
    return random_split(key, shape)


@takes_any_key(gives_keys=True)
def _fold_in(key: Any, data: Any) -> Any:
    return random_fold_in(key, convert_element_type(data, U32))


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """Return ``num`` new keys (an array of keys of that shape).

    Raises: TypeError for a non-key; ValueError for an array of keys.

    >>> jax.random.key_data(jax.random.split(jax.random.key(0)))
    Array([[1797259609, 2579123966],
           [ 928981903, 3453687069]], dtype=uint32)
    """
    shape = as_shape(num if isinstance(num, (tuple, list)) else (as_size(num),))
    if bus.active or config.debug_key_reuse.value:
        return reuse.derived("split", key, lambda: _split(key, shape))
    return _split(key, shape)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Return a new key made of ``key`` and a number.

    Of a Python float, its whole part counts.

    Raises: TypeError for a non-key, and if ``data`` is not a real scalar; ValueError for an array
    of keys and for NaN; OverflowError for a Python number that is not in [0, 2**32).

    >>> jax.random.key_data(jax.random.fold_in(jax.random.key(0), 7))
    Array([2716826189,  292468403], dtype=uint32)
    """
    if type(data) in dtypes.PYTHON_NUMBERS:
        data = as_word(int(data))
    elif represented_aval(data).shape:
        raise errors.explained(
            errors.ArgumentTypeError, "fold_in.C1",
            f"fold_in accepts a scalar, but was given an array of shape {aval_of(data).shape} "
            "!= (). Use jax.vmap for batching.", advice="jax.vmap(jax.random.fold_in, (None, 0))")
    if bus.active or config.debug_key_reuse.value:
        return reuse.derived("folded", key, lambda: _fold_in(key, data))
    return _fold_in(key, data)


def as_word(number: int) -> np.uint32:
    """Return an integer as uint32.  Raises: OverflowError for what does not fit."""
    if not 0 <= number < 1 << 32:
        raise OverflowError(f"Python integer {number} out of bounds for uint32")
    return np.uint32(number)


# -- arguments of samplers -------------------------------------------------------------------------


def as_shape(shape: Any) -> tuple[int, ...]:
    """Return ``shape``, an integer or an iterable of them, as a tuple.

    Raises: TypeError for other values, arrays of rank 0 included; ValueError for negative sizes.
    """
    if type(shape) is tuple:
        for n in shape:
            if type(n) is not int or n < 0:
                break
        else:  # as most are: no new tuple
            return shape
    sizes = (shape,) if isinstance(shape, (int, Dim)) else shape
    try:
        if not isinstance(sizes, Iterable) or not getattr(sizes, "ndim", 1):
            raise TypeError
        found = tuple([as_size(n) for n in sizes])
    except TypeError:
        raise errors.explained(
            errors.ArgumentTypeError, "random.C1",
            "Shapes must be 1D sequences of concrete values of integer type, got "
            f"{shape}.",
            advice="Write (n,) for one axis of n elements, () for a single number.") from None
    if any(n < 0 for n in found):
        raise errors.explained(
            errors.ShapeError, "random.shape",
            "Only non-negative indices are allowed when broadcasting static shapes, but got shape "
            f"{found}.", advice="A size of 0 gives an empty array.")
    return found


def joined_shape(name: str, shape: Any, *operands: Any) -> tuple[int, ...]:
    """Return ``shape``, or the shape to which ``operands`` broadcast if it is None.

    Raises: ValueError if they do not broadcast to it.
    """
    shapes = [represented_aval(x).shape for x in operands]
    if not any(shapes):
        return () if shape is None else as_shape(shape)
    try:
        together = broadcast_shapes(*shapes)
        if shape is None:
            return together
        wanted = as_shape(shape)
        if broadcast_shapes(wanted, together) == wanted:
            return wanted
    except ValueError:
        wanted = shape
    raise errors.explained(
        errors.ShapeError, f"{name}.shape",
        f"Incompatible shapes for broadcasting: shapes={[wanted, *shapes]}: {name} got a shape "
        "that its parameters do not broadcast to.",
        advice="Leave shape out, or give one whose trailing sizes are those of the parameters.")


def check_parameters(name: str, dtype: Any, *parameters: Any) -> None:
    """Refuse parameters of a distribution that meet its ``dtype`` in another one.

    Raises: TypePromotionError for those; ValueError for None and for PRNG keys.
    """
    for x in parameters:
        if type(x) is float or type(x) is int:
            continue
        if x is None:
            raise errors.explained(
                errors.ArgumentError, f"{name}.C2", f"None is not a valid parameter of {name}.",
                advice="Parameters are numbers or arrays of them.")
        aval = aval_of(x)
        if dtypes.is_extended(aval.dtype):
            raise errors.explained(
                errors.ArgumentError, f"{name}.C3",
                f"dtype={aval.dtype.name} is not a valid dtype for the parameters of {name}.",
                advice="The key comes first, then the parameters.")
        if join((aval.dtype, aval.weak_type), (dtype, False))[0] != dtype:
            raise errors.explained(
                errors.TypePromotionError, f"{name}.C4",
                f"In arguments to {name}, cannot safely cast argument of type {aval.dtype.name} "
                f"to {dtype.name}",
                advice="Convert the parameter with .astype, or draw in its dtype.")


def as_dtype(name: str, dtype: Any, default: type, accepts: Callable[[Any], bool], needs: str
             ) -> Any:
    """Return ``dtype``, or the default of Python's type ``default``, canonical.

    Raises: ValueError for a dtype the sampler cannot give; TypeError for float4.
    """
    if dtype is None:
        return dtypes.default_dtype(default)
    found = dtypes.canonicalize(dtype, explicit=True)
    if not accepts(found):
        raise errors.explained(
            errors.ArgumentError, f"{name}.dtype",
            f"dtype argument to `{name}` must be {needs} dtype, got {found}",
            advice="Leave it out, or convert the result.")
    check_wide_enough(name, found)
    return found


def check_wide_enough(name: str, dtype: Any) -> None:
    """Refuse floats of so few bits that no uniform numbers are among them.  Raises: DTypeError."""
    if dtypes.is_float4(dtype):
        raise errors.explained(
            errors.DTypeError, f"{name}.narrow", f"{name} cannot draw numbers of {dtype.name}.",
            advice="Draw in float32 and convert the result.")


def float_dtype(name: str, dtype: Any) -> Any:
    """Return a canonical float dtype.  Raises: ValueError for another; TypeError for float4."""
    return as_dtype(name, dtype, float, dtypes.is_float, "a float")


def drawn(fun: Callable, sampler: Callable, key: Any, shape: Any, dtype: Any, out_sharding: Any,
          *parameters: Any) -> Any:
    """Return ``sampler(key, shape, dtype, *parameters)``, the result of the public ``fun``.

    Its ``dtype`` is floating; None as ``shape`` is the one to which the parameters broadcast.
    Raises: ValueError for a dtype, shape or parameter that does not fit; TypePromotionError.
    """
    if out_sharding is not None:
        return placed(fun, out_sharding, key, *parameters, shape, dtype)
    name = fun.__name__
    dtype = float_dtype(name, dtype)
    if parameters:
        check_parameters(name, dtype, *parameters)
        shape = joined_shape(name, shape, *parameters)
    else:
        shape = as_shape(shape)
    used(key)
    return sampler(key, shape, dtype, *parameters)
