"""Which keys does a traced program use, and does it use one twice?

The program is run on *which key*, not on numbers: every key that comes in or is made has a number,
and what moves keys (slice, reshape, concatenate, …) moves those numbers by its own NumPy rule.
Branches are followed one by one, a loop's body twice.  Keys found by an index that is only known
at run time are one unknown key per index: the same index twice is reuse, two indices are not.

Read before: ``core.jaxpr``.  Read after: ``random.reuse``, which checks at traces and calls.
Invariant: only certain reuse is refused (tests/kernel/test_key_reuse.py).
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saem.core import errors, source
from saem.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, once_per_program, sub_jaxprs
from saem.derivatives.checkpoint import Remat
from saem.loops.conditional import Cond
from saem.loops.scan import Scan
from saem.loops.while_loop import While
from saem.ops.keys import KeyDType


class Use(NamedTuple):
    """One use of a key: by what, and where in user code."""

    by: str
    source: Any

    def text(self) -> str:
        return f"{self.by}{at(self.source)}"


class Creation(NamedTuple):
    """How keys of one family were made: by what, how many, and where in user code."""

    action: str
    shape: tuple[int, ...]
    source: Any

    def text(self, place: int) -> str:
        which = ""
        if self.shape:
            index = np.unravel_index(place, self.shape)
            which = f"[{', '.join(str(int(i)) for i in index)}]"
        return f"{self.action}{which}{at(self.source)}"


class Origin(NamedTuple):
    """Where the keys of an output come from: of which input, and, if they are those, which places.

    ``used`` marks those that the program itself used, ``first`` is how.
    """

    number: int | None
    places: np.ndarray | None
    used: np.ndarray
    first: Use | None


class Refusal(NamedTuple):
    """Why a program is refused under ``debug_key_reuse``."""

    tag: str
    sentence: str
    where: Any
    before: Use
    path: tuple[str, ...]

    def error(self) -> Exception:
        advice = how_to_avoid(self.before, self.path)
        if self.tag.endswith("loop"):
            advice += ("\nIn a loop: carry the key and split it in each turn, or fold_in the "
                       "number of the turn.")
        return errors.explained(errors.KeyReuseError, self.tag, self.sentence, where=self.where,
                                advice=advice)


class Flow(NamedTuple):
    """What a program does with its keys: (which of them, first use) per constant and input; its
    outputs' origins; the first certain reuse.  None stands for a non-key."""

    uses: tuple[tuple[np.ndarray, Use] | None, ...]
    outs: tuple[Origin | None, ...]
    refusal: Refusal | None


class Value(NamedTuple):
    """What is known of a value: a number that equal values share, and, of keys, their numbers."""

    number: int
    keys: np.ndarray | None


def at(where: Any) -> str:
    """Return `` in cell 3, line 2:   x = …`` for a source position, nothing if it is unknown."""
    position = source.position(where)
    return "" if position is None else f" in {errors.place_and_line(position)}"


def how_to_avoid(before: Use, path: Sequence[str]) -> str:
    """Return the lines of an error on the first use and the descent of a key."""
    lines = [f"It was used first by {before.text()}", "Its family:"]
    for depth, step in enumerate(path):
        lines.append("  " + "   " * max(depth - 1, 0) + ("└─ " if depth else "") + step)
    return "\n".join([*lines, "Use each key once: key, subkey = jax.random.split(key). Where the "
                      "same numbers are meant: jax.random.clone(key)."])


def is_key(aval: Any) -> bool:
    return isinstance(aval.dtype, KeyDType)


@once_per_program
def flow_of(closed: ClosedJaxpr) -> Flow | None:
    """Return what ``closed`` does with keys, None if it has none."""
    return _Follower().flow(closed) if has_keys(closed.jaxpr) else None


def has_keys(jaxpr: Jaxpr) -> bool:
    """Return whether a program has a key anywhere."""
    if any(is_key(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)):
        return True
    return any(any(is_key(v.aval) for v in eqn.outvars)
               or any(has_keys(getattr(sub, "jaxpr", sub)) for _, sub in sub_jaxprs(eqn.operation))
               for eqn in jaxpr.eqns)


class _Follower:
    """Follows keys through one program and those inside it."""

    def __init__(self) -> None:
        self.fresh_numbers = itertools.count()
        self.known: dict[Any, int] = {}
        self.starts: list[int] = []
        self.creations: list[tuple[Creation, int | None]] = []
        self.count = 0
        self.used: dict[int, Use] = {}
        self.refusals: list[Refusal] = []
        # Of a key found by an unknown index: the keys among which it is.
        self.among: dict[int, list[int]] = {}
        self.chosen: dict[Any, np.ndarray] = {}
        # Inside what a checkpoint computes a second time, whose uses were counted the first time.
        self.again = 0

    # -- keys and their numbers --

    def new_keys(self, shape: tuple[int, ...], action: str, parent: Any, where: Any) -> np.ndarray:
        keys = np.arange(self.count, self.count + int(np.prod(shape))).reshape(shape)
        self.starts.append(self.count)
        self.count += keys.size
        above = int(parent.flat[0]) if parent is not None and parent.size else None
        self.creations.append((Creation(action, shape, where), above))
        return keys

    def path(self, key: int) -> list[str]:
        number = bisect.bisect_right(self.starts, key) - 1
        creation, parent = self.creations[number]
        above = self.path(parent) if parent is not None else []
        return [*above, creation.text(key - self.starts[number])]

    def unknown(self, aval: Any, action: str = "a key of a call", parent: Any = None,
                where: Any = None) -> Value:
        keys = self.new_keys(aval.shape, action, parent, where) if is_key(aval) else None
        return Value(next(self.fresh_numbers), keys)

    def use(self, keys: np.ndarray, eqn: Eqn, index: int, what: str) -> None:
        """Mark keys as used; note a refusal if one surely was."""
        if self.again:
            return
        made = Use(what, eqn.source)
        new = set(keys.reshape(-1).tolist())
        for key in keys.reshape(-1).tolist():
            before = self.used.get(key)
            inside = self.among.get(key)
            if before is None and inside is not None and all(k in self.used for k in inside):
                before = self.used[inside[0]]
            if before is not None:
                self.refuse(what, index, eqn, before, key)
            self.used[key] = made
        for key, inside in self.among.items():
            if key in self.used and key not in new and not new.isdisjoint(inside) and all(
                    k in self.used for k in inside):
                self.refuse(what, index, eqn, self.used[key], key)

    def refuse(self, what: str, index: int, eqn: Eqn, before: Use, key: int) -> None:
        self.refusals.append(Refusal(
            "key.reused", f"In {what}, argument {index} is already consumed.",
            source.position(eqn.source), before, tuple(self.path(key))))

    # -- programs --

    def flow(self, closed: ClosedJaxpr) -> Flow:
        jaxpr = closed.jaxpr
        variables = [*jaxpr.constvars, *jaxpr.invars]
        given = []
        for number, var in enumerate(variables):
            inside = number < len(jaxpr.constvars)
            name = "a key closed over" if inside else \
                f"argument {number - len(jaxpr.constvars)}"
            given.append(self.unknown(var.aval, name))
        outs = self.run(jaxpr, given)
        owner = {int(key): (number, place) for number, value in enumerate(given)
                 if value.keys is not None for place, key in enumerate(value.keys.flat)}
        uses = tuple(self._used(value.keys) for value in given)
        refusal = self.refusals[0] if self.refusals else None
        return Flow(uses, tuple(self._origin(value, owner) for value in outs), refusal)

    def _used(self, keys: np.ndarray | None) -> tuple[np.ndarray, Use] | None:
        if keys is None:
            return None
        mask = np.array([key in self.used for key in keys.flat], bool).reshape(keys.shape)
        return (mask, self.used[int(keys[mask].flat[0])]) if mask.any() else None

    def _origin(self, value: Value, owner: dict[int, tuple[int, int]]) -> Origin | None:
        if value.keys is None:
            return None
        keys = value.keys.reshape(-1).tolist()
        mask = np.array([key in self.used for key in keys], bool).reshape(value.keys.shape)
        first = next((self.used[key] for key in keys if key in self.used), None)
        homes = [owner.get(key) for key in keys]
        if keys and all(home is not None and home[0] == homes[0][0] for home in homes):
            places = np.array([home[1] for home in homes], int).reshape(value.keys.shape)
            return Origin(homes[0][0], places, mask, first)
        above = keys[0] if keys else None
        while above is not None and above not in owner:
            above = self.creations[bisect.bisect_right(self.starts, above) - 1][1]
        return Origin(owner[above][0] if above is not None else None, None, mask, first)

    def run(self, jaxpr: Jaxpr, given: Sequence[Value]) -> list[Value]:
        env: dict[Var, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), given))

        def value(atom: Any) -> Value:
            if type(atom) is not Literal:
                return env[atom]
            key = ("literal", atom.aval, str(atom.val))
            return Value(self.numbered(key), None)

        for eqn in jaxpr.eqns:
            env.update(zip(eqn.outvars, self.equation(eqn, [value(a) for a in eqn.invars])))
        return [value(a) for a in jaxpr.outvars]

    def numbered(self, key: Any) -> int:
        try:
            number = self.known.get(key)
            if number is None:
                number = self.known[key] = next(self.fresh_numbers)
            return number
        except TypeError:  # a parameter that has no hash
            return next(self.fresh_numbers)

    def equation(self, eqn: Eqn, ins: list[Value]) -> list[Value]:
        """Return the values of an equation, whatever its primitive is."""
        prim = eqn.operation
        if isinstance(prim, Cond):
            return self.cond(eqn, ins)
        if isinstance(prim, Scan):
            return self.scan(eqn, ins)
        if isinstance(prim, While):
            return self.while_loop(eqn, ins)
        if sub_jaxprs(eqn.operation):
            return self.inner(eqn, ins)
        keys = next((v.keys for v in ins if v.keys is not None), None)
        if prim.consumes_key:
            self.use(keys, eqn, 0, prim.name)
        if prim.makes_keys:
            return [self.unknown(v.aval, prim.makes_keys, keys, eqn.source) for v in eqn.outvars]
        number = self.numbered((eqn.operation, *(v.number for v in ins))) \
            if not eqn.effects else next(self.fresh_numbers)
        return [Value(self.numbered((number, i)),
                      self.moved(eqn, v.aval, ins, number) if is_key(v.aval) else None)
                for i, v in enumerate(eqn.outvars)]

    def moved(self, eqn: Eqn, aval: Any, ins: Sequence[Value], number: int) -> np.ndarray:
        """Return the keys that an equation moved to its output."""
        given = [v.keys if v.keys is not None else np.asarray(a.val, a.aval.dtype)
                 if isinstance(a, Literal) else None for v, a in zip(ins, eqn.invars)]
        if all(x is not None for x in given):
            try:
                out = np.asarray(eqn.operation.evaluate(*given))
            except (TypeError, ValueError, IndexError, KeyError, AttributeError):
                out = None
            if out is not None and out.shape == aval.shape and out.dtype.kind == "i":
                return out
        if number not in self.chosen:
            source_keys = [v.keys.reshape(-1) for v in ins if v.keys is not None]
            among = np.concatenate(source_keys) if source_keys else np.zeros(0, int)
            made = self.new_keys(aval.shape, eqn.operation.name, among, eqn.source)
            self.chosen[number] = made
            if among.size:
                self.among.update(dict.fromkeys(made.reshape(-1).tolist(), among.tolist()))
        return self.chosen[number]

    def inner(self, eqn: Eqn, ins: list[Value]) -> list[Value]:
        """Follow the program of a call; of one that is not a plain call, only what goes in."""
        programs = sub_jaxprs(eqn.operation)
        sub = programs[0][1]
        jaxpr = getattr(sub, "jaxpr", sub)
        consts = [self.unknown(v.aval, "a key closed over") for v in jaxpr.constvars]
        same = len(jaxpr.invars) == len(ins) and all(
            v.keys is None or v.keys.shape == inside.aval.shape
            for v, inside in zip(ins, jaxpr.invars))
        second = isinstance(eqn.operation, Remat) and eqn.operation.differentiated
        self.again += second
        if same:
            outs = self.run(jaxpr, [*consts, *ins])
        else:
            outs = []
            self.shards(eqn, jaxpr, consts, ins)
        self.again -= second
        if len(outs) == len(eqn.outvars) and all(
                v.keys is None or v.keys.shape == out.aval.shape
                for v, out in zip(outs, eqn.outvars)):
            return outs
        return [self.unknown(v.aval, eqn.operation.name, None, eqn.source) for v in eqn.outvars]

    def shards(self, eqn: Eqn, jaxpr: Jaxpr, consts: list[Value], ins: list[Value]) -> None:
        """Follow a program that runs on parts of what goes in: what it uses is used as a whole."""
        if len(jaxpr.invars) != len(ins):
            return
        parts = [self.unknown(inside.aval, "a part of an argument", value.keys, eqn.source)
                 for inside, value in zip(jaxpr.invars, ins)]
        self.run(jaxpr, [*consts, *parts])
        for index, (part, value) in enumerate(zip(parts, ins)):
            if value.keys is not None and (taken := self._used(part.keys)) and taken[0].all():
                self.use(value.keys, eqn, index, eqn.operation.name)

    def cond(self, eqn: Eqn, ins: list[Value]) -> list[Value]:
        """Follow each branch from the same state; what one of them uses is used."""
        before, after, results = self.used, dict(self.used), []
        prim: Any = eqn.operation
        for branch in prim.branches:
            self.used = dict(before)
            consts = [self.unknown(v.aval) for v in branch.jaxpr.constvars]
            results.append(self.run(branch.jaxpr, [*consts, *ins[1:]]))
            after.update(self.used)
        self.used = after
        outs = []
        for i, v in enumerate(eqn.outvars):
            values = [result[i] for result in results]
            if all(value.number == values[0].number for value in values):
                outs.append(values[0])
            else:
                parent = values[0].keys
                outs.append(self.unknown(v.aval, "cond", parent, eqn.source))
        return outs

    def scan(self, eqn: Eqn, ins: list[Value]) -> list[Value]:
        """Follow the body twice, each time with other rows of the scanned keys."""
        prim: Any = eqn.operation
        body, split = prim.jaxpr.jaxpr, prim.num_consts + prim.num_carry
        consts, carry, xs = ins[:prim.num_consts], ins[prim.num_consts:split], ins[split:]
        held = [self.unknown(v.aval) for v in body.constvars]
        for turn in range(1 if prim.length == 1 else 2):
            rows = [self.unknown(v.aval, "a row of scanned keys", x.keys, eqn.source)
                    for v, x in zip(body.invars[split:], xs)]
            outs = self.turn("scan body", eqn, body, [*held, *consts, *carry, *rows], turn)
            carry = outs[:prim.num_carry]
            if turn == 0:
                for x, row in zip(xs, rows):
                    if x.keys is not None and (taken := self._used(row.keys)):
                        self.use(x.keys[:, taken[0]], eqn, 0, taken[1].by)
        return [*carry, *(self.unknown(v.aval, "scan", None, eqn.source)
                          for v in eqn.outvars[prim.num_carry:])]

    def while_loop(self, eqn: Eqn, ins: list[Value]) -> list[Value]:
        """Follow condition and body twice."""
        prim: Any = eqn.operation
        first, last = prim.cond_nconsts, prim.cond_nconsts + prim.body_nconsts
        carry = ins[last:]
        for turn in range(2):
            for name, program, consts in (
                    ("while_loop cond", prim.cond_jaxpr.jaxpr, ins[:first]),
                    ("while_loop body", prim.body_jaxpr.jaxpr, ins[first:last])):
                held = [self.unknown(v.aval) for v in program.constvars]
                outs = self.turn(name, eqn, program, [*held, *consts, *carry], turn)
                carry = outs if name.endswith("body") else carry
        return carry

    def turn(self, name: str, eqn: Eqn, body: Jaxpr, given: list[Value], turn: int) -> list[Value]:
        """Follow a body once more; what is refused in the second turn is the loop's doing."""
        before = len(self.refusals)
        outs = self.run(body, given)
        if turn:
            self.refusals[before:] = [refusal._replace(
                tag="key.reused.loop",
                sentence=f"{name} function leads to key reuse when repeatedly executed."
            ) for refusal in self.refusals[before:]]
        return outs
