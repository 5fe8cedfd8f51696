"""What are the small functions of lists, tuples and names that libraries take from JAX's utilities?

Read before: ``dropin.private_names``.
Invariant: each gives what JAX's gives (tests/kernel/test_dropin.py).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from saem.core import config, jaxpr
from saem.core.lazy import later

weakrefs: Any = later("jaxlib.weakref_lru_cache")


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple, tuple]:
    """Return the first of each pair, and the second."""
    found = [(a, b) for a, b in pairs]
    return tuple(a for a, _ in found), tuple(b for _, b in found)


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple, tuple, tuple]:
    """Return the first, the second and the third of each triple."""
    found = [(a, b, c) for a, b, c in triples]
    first, second, third = (tuple(x[i] for x in found) for i in range(3))
    return first, second, third


def concatenate(lists: Iterable[Sequence[Any]]) -> list[Any]:
    """Return the elements of the lists in one."""
    return list(itertools.chain.from_iterable(lists))


def partition_list(mask: Sequence[bool], values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the values where ``mask`` is false, and those where it is true."""
    assert len(mask) == len(values)
    return jaxpr.pick(values, map(bool, mask), False), jaxpr.pick(values, map(bool, mask))


def merge_lists(mask: Sequence[bool], without: Sequence[Any], chosen: Sequence[Any]) -> list[Any]:
    """Return one list, of ``chosen`` where ``mask`` is true and of ``without`` elsewhere."""
    assert sum(map(bool, mask)) == len(chosen)
    assert len(mask) == len(without) + len(chosen)
    return jaxpr.merge(mask, chosen, without)


def split_list(values: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Return the first values in lists of these sizes, and the rest in a last one."""
    return jaxpr.split_list(values, *sizes)


def split_list_checked(values: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Return all values in lists of these sizes."""
    assert sum(sizes) == len(values)
    return split_list(values, sizes)[:-1]


def unflatten(values: Iterable[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Return all values in lists of these sizes."""
    given = iter(values)
    lists = [[next(given) for _ in range(size)] for size in sizes]
    assert next(given, None) is None
    return lists


def subs_list(places: Sequence[int | None], source: Sequence[Any], others: Sequence[Any]
              ) -> list[Any]:
    """Return for each place an element of ``source``, and for None the next of ``others``."""
    left = iter(others)
    found = [next(left) if place is None else source[place] for place in places]
    assert next(left, None) is None
    return found


def tuple_insert(values: tuple, place: int, value: Any) -> tuple:
    """Return the tuple with ``value`` before the element at ``place``."""
    assert 0 <= place <= len(values), (place, len(values))
    return (*values[:place], value, *values[place:])


def tuple_delete(values: tuple, place: int) -> tuple:
    """Return the tuple without the element at ``place``."""
    assert 0 <= place < len(values), (place, len(values))
    return (*values[:place], *values[place + 1:])


def tuple_update(values: tuple, place: int, value: Any) -> tuple:
    """Return the tuple with ``value`` for the element at ``place``."""
    assert 0 <= place < len(values), (place, len(values))
    return (*values[:place], value, *values[place + 1:])


def ceil_of_ratio(x: int, y: int) -> int:
    """Return x / y, rounded up."""
    return -(-x // y)


def fun_name(fun: Any, default_name: str = "<unnamed function>") -> str:
    """Return the name of a function, seen through ``functools.partial``."""
    name = getattr(fun, "__name__", None)
    if name is None and isinstance(fun, functools.partial):
        return fun_name(fun.func, default_name)
    return default_name if name is None else str(name)


def cache(max_size: int | None = 4096, trace_context_in_key: bool | Callable = True) -> Callable:
    """Return a decorator that keeps results, by arguments and, if asked, by the settings too."""
    key = config.trace_key if trace_context_in_key is True else trace_context_in_key or (
        lambda: None)

    def decorate(function: Callable) -> Callable:
        kept = functools.lru_cache(max_size)(
            lambda _key, *args, **kwargs: function(*args, **kwargs))

        @functools.wraps(function)
        def cached(*args: Any, **kwargs: Any) -> Any:
            return kept(key(), *args, **kwargs)

        vars(cached).update(cache_clear=kept.cache_clear, cache_info=kept.cache_info)
        return cached

    return decorate


def weakref_lru_cache(f: Callable | None = None, *, maxsize: int | None = 2048,
                      trace_context_in_key: bool = True, explain: Callable | None = None) -> Any:
    """Keep results as long as the first argument lives, which is held weakly."""
    if f is None:
        return functools.partial(weakref_lru_cache, maxsize=maxsize,
                                 trace_context_in_key=trace_context_in_key, explain=explain)
    context = config.trace_key if trace_context_in_key else lambda: None
    return weakrefs.weakref_lru_cache(context, f, maxsize, explain)


def wraps(wrapped: Callable, namestr: str | None = None, docstr: str | None = None,
          **kwargs: Any) -> Callable:
    """Return a decorator like ``functools.wraps``, with a form for the name and the docstring."""
    def decorate(function: Any) -> Any:
        name = fun_name(wrapped)
        made = functools.wraps(wrapped)(function)
        made.__name__ = namestr.format(fun=name) if namestr else name
        doc = getattr(wrapped, "__doc__", "") or ""
        made.__doc__ = docstr.format(fun=name, doc=doc, **kwargs) if docstr else doc
        return made

    return decorate
