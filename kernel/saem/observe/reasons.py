"""Why was this call traced again?

Compares the signature of a call that found no program with the nearest earlier one of the same
function (the one with the fewest differences) and names every difference in the caller's words.

Read before: ``saem.core.events`` (Signature), ``saem.observe.messages`` (the sentences).
Read after: ``saem.observe.recorder``, which asks at every cache miss.
Invariant: a call that was traced again has at least one reason, and every difference between the
two signatures has one (tests/lens/test_reasons.py).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

from saem.core.events import Argument, Changed, Signature, StaticArgument
from saem.observe import messages
from saem.observe.schema import Place, Reason, Tag, Text

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_MANY = 3
Named = Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Earlier:
    """An earlier call of the function that was traced: its signature and its fate.

    ``compiled`` is whether it got a program of its own (False: traced inside another function).
    ``place`` is where that version of the function was written, ``transforms`` those it is under.
    """

    signature: Signature
    identity: int
    compiled: bool
    place: Place | None
    transforms: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class _Difference:
    """One difference between two signatures, before it becomes a sentence."""

    variant: str
    path: str | None = None
    old: str | None = None
    new: str | None = None
    note: Text = dataclasses.field(default_factory=lambda: Text("", ""))

    @property
    def tag(self) -> str:
        return self.variant.partition(".")[0]


def short_type(argument: Argument) -> str:
    """``f32[3,4]``, the notation of jaxprs; ``~f32[]`` for a weak type, as a tracer prints it."""
    weak = "~" * argument.weak_type
    return f"{weak}{argument.dtype}[{','.join(map(str, argument.shape))}]"


def printed(signature: Signature, short: Callable[[Argument], str] = short_type) -> str:
    """The signature as a call: ``x: f32[3], mode='foo'``, cut after a few arguments."""
    words = [f"{a.path}: {short(a)}" for a in signature.arguments]
    words += [f"{s.path}={_brief(s.value)}" for s in signature.static]
    more = [f"… +{len(words) - 6}"] if len(words) > 6 else []
    return ", ".join(words[:6] + more)


def why(
    name: str,
    signature: Signature,
    identity: int,
    place: Place | None,
    earlier: Sequence[Earlier],
    moved: dict[str, Place] | None = None,
    mutated: Sequence[Changed] = (),
    transforms: tuple[str, ...] = (),
) -> tuple[Reason, ...]:
    """Every reason why this call of ``name`` was traced, the most telling first.

    ``earlier`` are the function's earlier traced calls, oldest first; ``moved`` is where arrays
    were last moved to a placement; ``mutated`` are static arguments changed since they were hashed;
    ``transforms`` are those that the function is under now.
    """
    if not earlier:
        return (_reason(_Difference("first_call"), name),)
    same = [call for call in earlier if call.identity == identity]
    differences: list[_Difference] = []
    if not same:
        differences.append(_redefinition(earlier[-1], place, transforms))
    nearest, changes = _nearest(signature, same or list(earlier))
    differences += changes
    if not same:
        differences += _closure(nearest.signature, signature)
    differences = _mutated(differences, mutated)
    if not differences:
        differences.append(_Difference("dropped" if nearest.compiled else "nested"))
    grouped = _grouped([_with_note(change, moved or {}) for change in differences])
    return tuple(_reason(change, name, place, count) for change, count in grouped)


def _nearest(signature: Signature, earlier: list[Earlier]) -> tuple[Earlier, list[_Difference]]:
    """The earlier call with the fewest differences (the latest of several), and those."""
    best: tuple[Earlier, list[_Difference]] | None = None
    for call in reversed(earlier):
        changes = compare(call.signature, signature)
        if best is None or len(changes) < len(best[1]):
            best = (call, changes)
        if not changes and call.compiled:
            break
    assert best is not None
    return best


def compare(old: Signature, new: Signature) -> list[_Difference]:
    """Every difference between two signatures of one function, arguments first."""
    changes = _structure(old, new)
    before = {argument.path: argument for argument in old.arguments}
    for argument in new.arguments:
        if argument.path in before:
            changes += _argument(before[argument.path], argument)
    changes += _static(old.static, new.static)
    changes += _given(old, new)
    if not changes and old.structure != new.structure:
        changes.append(_Difference("structure", None, _brief(old.structure), _brief(new.structure)))
    if set(old.donated) != set(new.donated):
        was, now = (", ".join(call.donated) or "-" for call in (old, new))
        changes.append(_Difference("donation", None, was, now))
    changes += _settings("options", old.options, new.options)
    if old.mesh != new.mesh:
        changes.append(_Difference("mesh.context", None, old.mesh or "-", new.mesh or "-"))
    return changes + _settings("config", old.config, new.config)


def _top(path: str) -> str:
    """The argument that a leaf belongs to: ``params`` for ``params['w'][0]``."""
    return re.split(r"[.\[]", path, maxsplit=1)[0] or path


def _leaves(arguments: Sequence[Argument]) -> dict[str, list[Argument]]:
    leaves: dict[str, list[Argument]] = {}
    for argument in arguments:
        leaves.setdefault(_top(argument.path), []).append(argument)
    return leaves


def _structure(old: Signature, new: Signature) -> list[_Difference]:
    """Arguments given, left out, or with other leaves."""
    changes = []
    before, after = _leaves(old.arguments), _leaves(new.arguments)
    for top in {**before, **after}:
        was, now = before.get(top, []), after.get(top, [])
        if [leaf.path for leaf in was] == [leaf.path for leaf in now]:
            continue
        if {leaf.path for leaf in was} == {leaf.path for leaf in now}:
            continue
        if not was or not now:
            variant = "structure.given" if now else "structure.omitted"
            changes.append(_Difference(variant, top, _types(was), _types(now)))
        else:
            gone, come = _paths(was, now)
            changes.append(_Difference("structure.leaves", top, gone, come))
    return changes


def _types(leaves: list[Argument]) -> str | None:
    return _brief(", ".join(map(short_type, leaves))) if leaves else None


def _paths(was: list[Argument], now: list[Argument]) -> tuple[str, str]:
    """Return the leaves before and now; where they are many, those alone that the other lacks."""
    before, after = [leaf.path for leaf in was], [leaf.path for leaf in now]
    shown = ", ".join(before), ", ".join(after)
    if all(_brief(text) == text for text in shown):
        return shown
    gone = ", ".join(path for path in before if path not in set(after))
    new = ", ".join(path for path in after if path not in set(before))
    return _brief(gone) or "-", _brief(new) or "-"


def _argument(old: Argument, new: Argument) -> list[_Difference]:
    """What differs in one leaf that both calls have."""
    changes = []
    was, now = short_type(old), short_type(new)
    if old.shape != new.shape:
        changes.append(_Difference("shape", new.path, was, now))
    if old.dtype != new.dtype:
        changes.append(_Difference("dtype", new.path, was, now))
    elif old.weak_type != new.weak_type:
        changes.append(_Difference("weak_type", new.path, was, now))
    if old.committed != new.committed:
        variant = "committed" if new.committed else "committed.no"
        changes.append(_Difference(variant, new.path, old.placement, new.placement))
    placed = bool(old.placement and new.placement)  # a Python number lies nowhere
    if placed and old.placement != new.placement and (old.committed or not new.committed):
        changes.append(_Difference("device", new.path, old.placement, new.placement))
    elif old.mesh != new.mesh and old.mesh and new.mesh:
        changes.append(_Difference("mesh", new.path, old.mesh, new.mesh))
    elif old.sharding != new.sharding:
        changes.append(_Difference("sharding", new.path, old.sharding or "-", new.sharding or "-"))
    return changes


def _static(old: Sequence[StaticArgument], new: Sequence[StaticArgument]) -> list[_Difference]:
    changes = []
    before = {static.path: static for static in old}
    for static in new:
        was = before.pop(static.path, None)
        if was is None:
            changes.append(_Difference("structure.given", static.path, None, _brief(static.value)))
        elif (was.value, was.hash) != (static.value, static.hash):
            shown = (_brief(was.value), _brief(static.value))
            changes.append(_Difference(_static_variant(was, static), static.path, *shown))
    for path, was in before.items():
        changes.append(_Difference("structure.omitted", path, _brief(was.value), None))
    return changes


def _static_variant(old: StaticArgument, new: StaticArgument) -> str:
    if _ADDRESS.sub("", old.value) == _ADDRESS.sub("", new.value):
        return "static_value.object"
    return "static_value"


def _given(old: Signature, new: Signature) -> list[_Difference]:
    """Arguments that are now passed by keyword instead of by position, or the other way."""
    before, after = _ways(old), _ways(new)
    return [
        _Difference(f"position_keyword.{now}", top, before[top], now)
        for top, now in after.items()
        if before.get(top, now) != now
    ]


def _ways(signature: Signature) -> dict[str, str]:
    """For each argument, whether it was given by position or by keyword."""
    ways = {_top(argument.path): argument.given for argument in signature.arguments}
    return ways | {_top(static.path): static.given for static in signature.static}


def _settings(variant: str, old: Named, new: Named) -> list[_Difference]:
    """Names whose values differ, among options of ``jit`` or settings of the engine."""
    was, now = dict(old), dict(new)
    return [_Difference(variant, name, _brief(was.get(name, "-")), _brief(now.get(name, "-")))
            for name in sorted(was | now) if was.get(name) != now.get(name)]


def _closure(old: Signature, new: Signature) -> list[_Difference]:
    """What a new version of a function closes over and the old one did not."""
    before = dict(old.closure)
    return [_Difference("closure", name, _brief(before[name]), _brief(value))
            for name, value in new.closure if before.get(name, value) != value]


def _mutated(changes: list[_Difference], changed: Sequence[Changed]) -> list[_Difference]:
    """Say of static arguments that were changed in place that they were."""
    paths = {change.path for change in changed}
    kept = [c for c in changes if not (c.tag == "static_value" and c.path in paths)]
    return kept + [_Difference("static_mutated", change.path, _brief(change.old),
                               _brief(change.new)) for change in changed]


def stale(name: str, changed: Sequence[Changed]) -> tuple[Reason, ...]:
    """Why a kept program answered a call with values that are no longer true."""
    return tuple(
        _reason(_Difference("static_mutated.stale" if change.kind == "static" else "closure.stale",
                            change.path, _brief(change.old), _brief(change.new)), name)
        for change in changed)


def _redefinition(last: Earlier, place: Place | None, transforms: tuple[str, ...]) -> _Difference:
    """Another function: under other transformations, made anew by the same run, or redefined."""
    if last.transforms != transforms:
        was, now = (" ▸ ".join(chain) or "-" for chain in (last.transforms, transforms))
        return _Difference("redefinition.transformed", None, was, now)
    old = last.place
    same_place = old is not None and place is not None and old.file == place.file
    if same_place and old is not None and place is not None:
        if (old.line, old.run) == (place.line, place.run):
            return _Difference("redefinition.anew")
    return _Difference("redefinition")


def _with_note(change: _Difference, moved: dict[str, Place]) -> _Difference:
    """Add where arrays were last moved to the placement that a difference is about."""
    place = moved.get(change.new or "") if change.variant in ("committed", "device") else None
    if place is None:
        return change
    where = {"where_en": place.label.en, "where_ko": place.label.ko}
    return dataclasses.replace(change, note=messages.fill(messages.LAST_MOVED, **where))


def _grouped(changes: list[_Difference]) -> list[tuple[_Difference, int]]:
    """Join many leaves of one argument that differ in the same way; each with its count."""
    groups: dict[tuple[str, str], list[_Difference]] = {}
    for change in changes:
        groups.setdefault((change.variant, _top(change.path or "")), []).append(change)
    joined: list[tuple[_Difference, int]] = []
    for (variant, _), group in groups.items():
        leaves = variant.partition(".")[0] in ("shape", "dtype", "weak_type", "committed", "device")
        if leaves and len(group) >= _MANY:
            joined.append((group[0], len(group)))
        else:
            joined += [(change, 1) for change in group]
    return joined


def _reason(
    change: _Difference, name: str, place: Place | None = None, count: int = 1
) -> Reason:
    says, advice = messages.REASONS[change.variant]
    path = change.path or ""
    many = messages.SUBJECT_MANY if count > 1 else messages.SUBJECT
    subject = messages.fill(many, path=path, top=_top(path), count=count - 1)
    where = _where(place)
    values = {
        "name": name,
        "path": path,
        "old": change.old or "",
        "new": change.new or "",
        "where_en": where.en,
        "where_ko": where.ko,
    }
    english = messages.fill(says, subject=subject.en, **values).en + change.note.en
    korean = messages.fill(says, subject=subject.ko, **values).ko + change.note.ko
    tag: Tag = change.tag  # type: ignore[assignment]
    return Reason(tag, change.path, change.old, change.new, Text(english, korean), advice)


def _where(place: Place | None) -> Text:
    if place is None:
        return Text("?", "?")
    if place.run is None:
        return place.label
    return Text(
        messages.fill(messages.RUN, label=place.label.en, run=place.run).en,
        messages.fill(messages.RUN, label=place.label.ko, run=place.run).ko,
    )


def _brief(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"
