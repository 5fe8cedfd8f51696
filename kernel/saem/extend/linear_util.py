"""How do libraries put layers around a function that takes and returns flat lists?

(``jax.extend.linear_util``.)  A layer changes the arguments on the way in and the results on the
way out, and may hand something out beside them: ``flatten_fun`` gives the structure of the result
so.  A function with layers is compared by what it is made of, so that two of them wrapped the
same way share what was traced for one.

Read before: nothing.  Read after: ``saem.api_util``, ``saem.interpreters.partial_eval``.
Invariant: nothing in the engine stands on this file.
Source: observed behaviour of jax.extend.linear_util.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Generator
from typing import Any


class StoreException(Exception):
    """A value beside the results was read before the function ran, or given twice."""


class Store:
    """A place for one value that a layer hands out; with ``same``, equal values may come again."""

    __slots__ = ("values", "same")

    def __init__(self, same: bool = False):
        self.values: list[Any] = []
        self.same = same

    def store(self, value: Any) -> None:
        """Keep ``value``.  Raises: StoreException if there is another one already."""
        if self.values and not (self.same and self.values[0] == value):
            raise StoreException("Store occupied: the function ran twice. Wrap it anew for each "
                                 "call.")
        self.values[:] = [value]

    def __call__(self) -> Any:
        if not self.values:
            raise StoreException("Store empty: the function has not run yet.")
        return self.values[0]

    @property
    def val(self) -> Any:
        """The value.  Raises: StoreException if there is none yet."""
        return self()

    def __bool__(self) -> bool:
        return bool(self.values)


# One layer: the function that adds it, its arguments, and where it puts further results.
Layer = tuple[Callable, tuple, "Store | None"]


class WrappedFun:
    """A function ``f`` inside ``layers``, outermost last; ``call_wrapped`` runs it."""

    __slots__ = ("f", "layers", "params", "debug_info", "in_type")

    def __init__(self, f: Callable, layers: tuple[Layer, ...] = (), params: Any = (),
                 in_type: Any = None, debug_info: Any = None):
        self.f = f
        self.layers = layers
        self.params = tuple(sorted(dict(params or ()).items()))
        self.in_type = in_type
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    @property
    def stores(self) -> tuple:
        """What each layer hands out, the outermost first; None for one that hands out nothing."""
        return tuple(store for _, _, store in reversed(self.layers))

    @property
    def transforms(self) -> tuple:
        """The layers and their arguments, the outermost first."""
        return tuple((add, static) for add, static, _ in reversed(self.layers))

    def wrap(self, add: Callable, static: tuple, store: Store | None) -> WrappedFun:
        """Return this function inside one more layer."""
        return WrappedFun(self.f, (*self.layers, (add, static, store)), self.params, None,
                          self.debug_info)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function through all its layers."""
        call = functools.partial(self.f, **dict(self.params)) if self.params else self.f
        for add, static, store in self.layers:
            call = (functools.partial(add, call, *static) if store is None
                    else functools.partial(add, call, store, *static))
        return call(*args, **kwargs)

    def populate_stores(self, values: tuple) -> None:
        """Hand out ``values`` as if the function had run."""
        for store, value in zip(self.stores, values, strict=True):
            if store is not None:
                store.store(value)

    def anew(self) -> WrappedFun:
        """Return this function with places for further results that are empty."""
        layers = tuple((add, static, None if store is None else Store(store.same))
                       for add, static, store in self.layers)
        return WrappedFun(self.f, layers, self.params, self.in_type, self.debug_info)

    def replace_debug_info(self, debug_info: Any) -> WrappedFun:
        """Return this function with another description of itself."""
        return WrappedFun(self.f, self.layers, self.params, self.in_type, debug_info)

    def __repr__(self) -> str:
        layers = "".join(f"{number}: {add.__name__}   {static}\n"
                         for number, (add, static) in enumerate(self.transforms))
        return f"Wrapped function:\n{layers}\nCore: {self.__name__}\n"

    def _key(self) -> tuple:
        return self.transforms, self.params, self.in_type

    def __eq__(self, other: Any) -> bool:
        return (isinstance(other, WrappedFun) and self.f is other.f and self._key() == other._key())

    def __hash__(self) -> int:
        return hash((self.f, self._key()))


def wrap_init(f: Callable, params: Any = None, *, debug_info: Any = None) -> WrappedFun:
    """Return ``f`` without layers; ``params`` are keyword arguments it always gets."""
    return WrappedFun(f, (), params, None, debug_info)


def _curried(add: Callable) -> Callable:
    """Let ``add(layer, fun, *static)`` also be a decorator of ``layer``."""

    @functools.wraps(add)
    def decorator(layer: Callable, *rest: Any, **options: Any) -> Any:
        if not rest:
            return functools.update_wrapper(
                functools.partial(decorator, layer, **options), layer)
        return add(layer, *rest, **options)

    return decorator


@functools.lru_cache(256)
def _generated(layer: Callable, hands_out: bool) -> Callable:
    """Return a layer that was written as a generator as one that calls the function itself.

    Such a layer yields the changed arguments, is sent the results, and yields the changed ones.
    """

    def run(layer_run: Generator[tuple, Any, Any], call: Callable) -> Any:
        args, kwargs = next(layer_run)
        try:
            results = call(*args, **kwargs)
        except BaseException:
            layer_run.close()  # leaves the contexts that the layer has entered
            raise
        return layer_run.send(results)

    if not hands_out:
        @functools.wraps(layer)
        def plain(call: Callable, *static_and_args: Any, **kwargs: Any) -> Any:
            return run(layer(*static_and_args, **kwargs), call)
        return plain

    @functools.wraps(layer)
    def with_store(call: Callable, store: Store, *static_and_args: Any, **kwargs: Any) -> Any:
        results, beside = run(layer(*static_and_args, **kwargs), call)
        store.store(beside)
        return results
    return with_store


@_curried
def transformation(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Return ``fun`` inside the layer that the generator ``gen(*static, *args)`` describes."""
    return fun.wrap(_generated(gen, False), gen_static_args, None)


@_curried
def transformation_with_aux(gen: Callable, fun: WrappedFun, *gen_static_args: Any
                            ) -> tuple[WrappedFun, Callable[[], Any]]:
    """Do as ``transformation``; ``gen`` yields (results, value), the second result gives the value.
    """
    store = Store()
    return fun.wrap(_generated(gen, True), gen_static_args, store), store


@_curried
def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Return ``fun`` inside ``gen(call, *static, *args)``, which runs ``call`` itself."""
    return fun.wrap(gen, gen_static_args, None)


@_curried
def transformation_with_aux2(gen: Callable, fun: WrappedFun, *gen_static_args: Any,
                             use_eq_store: bool = False, unk_names: bool = False
                             ) -> tuple[WrappedFun, Callable[[], Any]]:
    """Do as ``transformation2``; ``gen(call, store, *static, *args)`` stores a value beside."""
    store = Store(use_eq_store)
    return fun.wrap(gen, gen_static_args, store), store


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Return (True, value) if the first of two functions ran, (False, value) if the second did.

    Raises: StoreException if none ran, or both.
    """
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both stores are occupied: only one of the functions should run.")


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """Return ``call(fun, *args)`` that remembers its results as long as the function lives."""
    known: weakref.WeakKeyDictionary[Callable, dict] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def remembered(fun: WrappedFun, *args: Any) -> Any:
        answers = known.setdefault(fun.f, {})
        key = (fun._key(), args)
        found = answers.get(key)
        if found is None:
            answer = call(fun, *args)
            found = answers[key] = answer, tuple(
                None if store is None else store() for store in fun.stores)
        else:
            fun.populate_stores(found[1])
        return found[0]

    def evict(f: Callable) -> None:
        known.pop(f, None)

    remembered.cache_clear = known.clear  # type: ignore[attr-defined]
    remembered.evict_function = evict  # type: ignore[attr-defined]
    return remembered


__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]
