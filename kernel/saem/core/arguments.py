"""Which argument of a call is which, in the caller's words?

Static arguments are separated from dynamic ones, donated ones found, and every leaf gets the name
the caller would write: ``x``, ``params['w'][0]``.

Read before: ``core.tree``.  Read after: ``transform.mapping`` and ``jit.jitted``.
Invariant: names are computed only when an event or an error needs them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from saem.core import config, dtypes, errors, source, tree
from saem.core.avals import ShapedArray, aval_functions, aval_of
from saem.core.refs import is_ref, returned_reference


def as_tuple(value: Any, kind: type) -> tuple:
    """Return ``value``, one ``kind`` or an iterable of them, as a tuple."""
    if value is None:
        return ()
    if isinstance(value, kind):
        return (value,)
    return tuple(value)


def as_numbers(value: Any) -> tuple[int, ...]:
    """Return argument numbers, one or an iterable of them, as a tuple.

    Raises: TypeError for a value that is not an integer.
    """
    if value is None:
        return ()
    return (operator.index(value),) if is_integer(value) else tuple(map(operator.index, value))


def is_integer(value: Any) -> bool:
    """Return whether ``value`` is one integer: Python's, NumPy's, or an object that stands for one.
    """
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def name_of(fun: Any) -> str:
    """Return what messages and jaxprs call ``fun``."""
    fun = fun.func if isinstance(fun, functools.partial) else fun
    return getattr(fun, "__name__", None) or type(fun).__name__


def shown_name(fun: Any) -> str:
    """Return the ``__name__`` of what a transformation makes of ``fun``, which may have none."""
    fun = fun.func if isinstance(fun, functools.partial) else fun
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) else "<unnamed function>"


def signature_of(fun: Callable) -> inspect.Signature | None:
    """Return the signature of ``fun``, None where Python knows none."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def is_plain(fun: Callable) -> bool:
    """Return whether the signature of ``fun`` is that of its code, which is cheap to read."""
    return (type(fun) is types.FunctionType and not hasattr(fun, "__wrapped__")
            and not hasattr(fun, "__signature__") and config.shortcuts.value)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Parameters:
    """The parameters of a jitted function, and which of them are static or donated.

    Numbers and names are completed from each other, so that a static argument stays static
    whether it is passed by position or by keyword.

    Raises: ValueError for a number or name the function does not have.
    """

    def __init__(self, fun: Callable, static_argnums: Any, static_argnames: Any,
                 donate_argnums: Any, donate_argnames: Any):
        self.fun = fun
        self.static_argnums, self.static_argnames = self._complete(
            "static", static_argnums, static_argnames)
        self.donate_argnums, self.donate_argnames = self._complete(
            "donate", donate_argnums, donate_argnames)
        both = set(self.static_argnums) & set(self.donate_argnums)
        if both:
            names = [self.names[i] for i in sorted(both) if i < len(self.names)]
            said, noun, held = ("argnames", "names", names) if names else (
                "argnums", "indices", sorted(both))
            raise ValueError(
                f"static_{said} and donate_{said} cannot intersect. Argument {noun} {set(held)} "
                f"appear in both static_{said} and donate_{said}. A static argument has no buffer "
                "to donate.")

    @functools.cached_property
    def signature(self) -> inspect.Signature | None:
        """The signature of the function; read only when a name is needed, since it is expensive."""
        return signature_of(self.fun)

    @functools.cached_property
    def names(self) -> list[str]:
        """The names of the parameters that can be passed by position."""
        if is_plain(self.fun):
            return list(self.fun.__code__.co_varnames[:self.fun.__code__.co_argcount])
        if self.signature is None:
            return []
        return [p.name for p in self.signature.parameters.values() if p.kind in _POSITIONAL]

    @functools.cached_property
    def rest(self) -> str:
        """The name of the parameter that takes all other positional arguments."""
        if is_plain(self.fun):
            code = self.fun.__code__
            if code.co_flags & inspect.CO_VARARGS:
                return code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        elif self.signature is not None:
            for p in self.signature.parameters.values():
                if p.kind is p.VAR_POSITIONAL:
                    return p.name
        return "args"

    def knows(self, numbers: Sequence[int], words: Sequence[str]) -> bool:
        """Return whether a plain function has parameters of these numbers and names."""
        if not is_plain(self.fun):
            return False
        code, count = self.fun.__code__, len(self.names)
        keywords = code.co_varnames[count:count + code.co_kwonlyargcount]
        return (all(type(n) is int and -count <= n < count for n in numbers)
                and all(word in self.names[code.co_posonlyargcount:] or word in keywords
                        for word in words))

    def _complete(self, what: str, nums: Any, names: Any) -> tuple[tuple[int, ...], tuple]:
        if nums is None and names is None:
            return (), ()
        numbers = list(as_numbers(nums))
        words = list(as_tuple(names, str))
        self._check(what, numbers, words)
        count = len(self.names)
        if nums is None:
            numbers += [self.names.index(w) for w in words if w in self.names]
        if names is None:
            words += [self.names[n] for n in numbers if 0 <= n < count]
        return tuple(sorted(set(numbers))), tuple(dict.fromkeys(words))

    def _check(self, what: str, numbers: Sequence[int], words: Sequence[str]) -> None:
        if self.knows(numbers, words):  # the common case, without the expensive signature
            return
        for kind, values in ((int, numbers), (str, words)):
            for value in values:
                if not isinstance(value, kind):
                    lead = "" if kind is int else f"argument is not a string: {value}. "
                    raise TypeError(f"{lead}{what}_arg{'nums' if kind is int else 'names'} needs "
                                    f"{kind.__name__} or a sequence of them, got {value!r}")
        if self.signature is None:
            return
        parameters = self.signature.parameters.values()
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            for word in words:
                known = self.signature.parameters.get(word)
                if known is None or known.kind is known.POSITIONAL_ONLY:
                    raise ValueError(
                        f"Jitted function has invalid argnames {{{word!r}}} in {what}_argnames. "
                        f"Function does not take these args. It takes {list(self.names)}.")
        if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
            if not all(-len(self.names) <= n < len(self.names) for n in numbers):
                raise ValueError(
                    f"Jitted function has {what}_argnums={tuple(numbers)}, but only accepts "
                    f"{len(self.names)} positional arguments.")

    def positional_name(self, number: int) -> str:
        """Return what the caller calls positional argument ``number``."""
        if number < len(self.names):
            return self.names[number]
        return f"{self.rest}[{number - len(self.names)}]"

    def keyword_name(self, word: str) -> str:
        """Return what the function has the argument ``word`` as: ``word``, or ``rest['word']``."""
        if is_plain(self.fun):
            code = self.fun.__code__
            count = code.co_argcount + code.co_kwonlyargcount
            if not code.co_flags & inspect.CO_VARKEYWORDS or (
                    word in code.co_varnames[code.co_posonlyargcount:count]):
                return word
            rest = code.co_varnames[count + bool(code.co_flags & inspect.CO_VARARGS)]
        elif self.signature is None:
            return word
        else:
            parameters = self.signature.parameters
            known = parameters.get(word)
            if known is not None and known.kind not in (known.POSITIONAL_ONLY, known.VAR_KEYWORD):
                return word
            rest = next((p.name for p in parameters.values() if p.kind is p.VAR_KEYWORD), "kwargs")
        return f"{rest}[{word!r}]"

    def names_of_arrays(self, count: int, kwargs: Iterable[str]) -> list[tuple[str, str]]:
        """Do as ``leaf_names`` for a call with ``count`` arrays by position, and others by name."""
        found = [(self.positional_name(n), "position") for n in range(count)]
        return found + [(self.keyword_name(word), "keyword")
                        for word in sorted(kwargs)] if kwargs else found

    def leaf_names(self, args: dict[int, Any], kwargs: dict[str, Any]) -> list[tuple[str, str]]:
        """Return (name, 'position' or 'keyword') for every leaf of the dynamic arguments."""
        found = []
        for number, value in args.items():
            base = self.positional_name(number)
            found += [(base + tree.keystr(path), "position")
                      for path, _ in tree.flatten_with_path(value)[0]]
        for word, value in sorted(kwargs.items()):
            found += [(self.keyword_name(word) + tree.keystr(path), "keyword")
                      for path, _ in tree.flatten_with_path(value)[0]]
        return found


class Bound:
    """The arguments of one call: static ones, and the leaves of the dynamic ones."""

    __slots__ = ("leaves", "in_tree", "statics", "args", "kwargs", "nargs")

    def __init__(self, parameters: Parameters, args: tuple, kwargs: dict[str, Any]):
        numbers, names = parameters.static_argnums, parameters.static_argnames
        if numbers and numbers[0] < 0:  # they are sorted
            negative = [n for n in numbers if n < 0]
            numbers = (*positions(negative, len(args)), *numbers[len(negative):])
            numbers = tuple(sorted(set(numbers)))
        if numbers or (names and kwargs):
            static_pos = tuple((i, args[i]) for i in numbers if i < len(args))
            static_kw = tuple((k, kwargs[k]) for k in sorted(kwargs) if k in names)
            self.statics = static_pos + static_kw
            self.args = tuple(x for i, x in enumerate(args) if i not in numbers)
            self.kwargs = {k: v for k, v in kwargs.items() if k not in names}
        else:
            self.statics = ()
            self.args = args
            self.kwargs = kwargs
        self.nargs = len(args)
        self.leaves, self.in_tree = tree.flatten((self.args, self.kwargs))

    def rebuild(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return args and kwargs of the call with ``leaves`` in place of the dynamic ones."""
        dynamic, kwargs = self.in_tree.unflatten(leaves)
        if not self.statics:
            return list(dynamic), kwargs
        static_pos = {k: v for k, v in self.statics if isinstance(k, int)}
        rest = iter(dynamic)
        args = [static_pos[i] if i in static_pos else next(rest) for i in range(self.nargs)]
        return args, {**kwargs, **{k: v for k, v in self.statics if isinstance(k, str)}}

    def positions(self) -> dict[int, Any]:
        """Return the dynamic positional arguments by their number in the call."""
        static = {k for k, _ in self.statics if isinstance(k, int)}
        numbers = [i for i in range(self.nargs) if i not in static]
        return dict(zip(numbers, self.args))

    def leaf_names(self, parameters: Parameters) -> list[tuple[str, str]]:
        """Return (name, 'position' or 'keyword') for every leaf, as the caller would write it."""
        if (not self.statics and config.shortcuts.value
                and self.in_tree.num_nodes == self.in_tree.num_leaves + 3):
            # Each argument is an array: beside them the tree has two containers and their pair.
            return parameters.names_of_arrays(self.nargs, self.kwargs)
        return parameters.leaf_names(self.positions(), self.kwargs)


def positions(numbers: Iterable[int], count: int) -> list[int]:
    """Return argument ``numbers`` counted from the front of ``count`` arguments.

    Raises: ValueError for one that the call does not have.
    """
    found = list(numbers)
    for n in found:
        if not -count <= n < count:
            raise ValueError(
                "Positional argument indices, e.g. for `static_argnums`, must have "
                f"value greater than or equal to -len(args) and less than len(args), but got value "
                f"{n} for len(args) == {count}.")
    return [n % count for n in found]


def distinct_positions(numbers: Iterable[int], count: int) -> list[int]:
    """Return ``argnums`` of derivatives, counted from the front of ``count`` arguments.

    Raises: ValueError for one that the call does not have; TypeError for one named twice.
    """
    found = positions(numbers, count)
    if len(set(found)) < len(found):
        raise TypeError(f"argnums={tuple(numbers)} name an argument twice, of {count} positional "
                        "arguments. Name each once: its derivative is the same.")
    return found


def wraps(fun: Callable, transform: str) -> Callable:
    """Return a decorator that makes a function look like ``fun``, as ``functools.wraps`` does.

    ``transform`` is what was done with ``fun``: ``source.function_ref`` reads it.
    Attributes of a callable object that are not what a function has there (a name that is not a
    text, annotations that are not a dict) are left out.
    """
    def decorate(made: Callable) -> Callable:
        if not hasattr(fun, "__name__"):
            made.__name__ = shown_name(fun)
        try:
            functools.update_wrapper(made, fun)
        except TypeError:
            for name in functools.WRAPPER_ASSIGNMENTS:
                with contextlib.suppress(AttributeError, TypeError):
                    setattr(made, name, getattr(fun, name))
            functools.update_wrapper(made, fun, assigned=())
        made.__transform__ = transform  # type: ignore[attr-defined]
        return made

    return decorate


def documented(made: Callable, fun: Callable, what: str) -> Callable:
    """Return ``made`` whose documentation begins with ``what`` it does with ``fun``.

    The documentation of ``fun`` itself follows.
    """
    name, own = shown_name(fun), fun.__doc__
    made.__doc__ = f"{what.format(name)}\n\nOf {name}: {own}" if own else what.format(name)
    return made


def described(fun: Callable) -> str:
    """Return ``name at file:line`` of a function."""
    reference = source.function_ref(fun)
    return f"{reference.name} at {errors.file_name(reference.file)}:{reference.line}"


def check_callable(fun: Any) -> None:
    """Refuse a non-function: what cannot be called, or only makes a generator.

    Raises: TypeError.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun} of type {type(fun)}")
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun}. Write @staticmethod "
                        "as the first decorator, above this one.")
    code = getattr(fun, "__code__", None)  # of a plain function or method it says so at once
    if inspect.isgeneratorfunction(fun) if code is None else code.co_flags & inspect.CO_GENERATOR:
        raise TypeError(f"Expected a function, got a generator function: {fun}. Collect what it "
                        "yields in a list, and return that.")


def check_outputs(kind: str, fun: Callable, outs: Sequence[Any], out_tree: Any) -> None:
    """Refuse results of a function traced for ``kind`` that are not arrays.

    Raises: TypeError naming the output.
    """
    for number, x in enumerate(outs):
        if type(x) in aval_functions and not is_ref(getattr(x, "aval", None)):
            continue
        path, _ = tree.flatten_with_path(out_tree.unflatten(range(len(outs))))[0][number]
        try:
            if is_ref(aval_of(x)):
                raise returned_reference(described(fun), kind, aval_of(x), tree.keystr(path))
        except TypeError:
            at = f" at output component {tree.keystr(path)}" if path else ""
            raise errors.explained(
                errors.ArgumentTypeError, f"{kind}.output",
                f"function {described(fun)} traced for {kind} returned a value of type "
                f"{type(x)}{at}, which is not a valid JAX type.",
                advice="Return arrays, numbers, or pytrees of them.") from None


def abstract(x: Any) -> ShapedArray:
    """Return the type of an argument that need not be there: shape and dtype suffice.

    Raises: TypeError if it has none.
    """
    try:
        return aval_of(x)
    except TypeError:
        numpy_made = isinstance(x, (np.ndarray, np.generic))
        if hasattr(x, "shape") and hasattr(x, "dtype") and not numpy_made:
            return ShapedArray(tuple(x.shape), dtypes.canonicalize(x.dtype))
        raise


def abstract_arguments(fun: Callable, leaves: Sequence[Any],
                       names: Callable[[], Iterable[tuple[str, str]]],
                       type_of: Callable[[Any], ShapedArray] = aval_of) -> tuple[ShapedArray, ...]:
    """Return the types of the arguments of ``fun``, which messages call by ``names``.

    Raises: TypeError naming the argument that is not an array.
    """
    avals: list[ShapedArray] = []
    try:
        for x in leaves:
            avals.append(type_of(x))
    except TypeError:
        path, _ = list(names())[len(avals)]
        raise errors.explained(
            errors.ArgumentTypeError, "jit.argument",
            f"Error interpreting argument to {fun} as an abstract array. The problematic value is "
            f"of type {type(x)} and was passed to the function at path {path}.",
            advice="This typically means that a jit-wrapped function was called with a non-array "
            "argument. Mark it static with static_argnums or static_argnames.") from None
    except OverflowError:
        path, _ = list(names())[len(avals)]
        raise OverflowError(
            "An overflow was encountered while parsing an argument to a jitted computation, whose "
            f"argument path is {path}: {x} needs 64 bits. Turn on jax_enable_x64, or pass it as a "
            "float.") from None
    return tuple(avals)


def check_static_hashable(parameters: Parameters, statics: Iterable[tuple[Any, Any]]) -> None:
    """Refuse static values without a hash.

    Raises: ValueError naming the argument.
    """
    for label, value in statics:
        try:
            hash(value)
        except TypeError as error:
            name = parameters.positional_name(label) if isinstance(label, int) else label
            raise errors.explained(
                errors.ArgumentError, "jit.static",
                "Non-hashable static arguments are used in a jit function: static argument "
                f"{name!r} (index {label}) is of type {type(value).__name__}, which cannot be "
                f"hashed ({error}).",
                advice="Pass a tuple instead of a list, a frozen dataclass instead of a mutable "
                "one; or do not mark the argument static.") from None
