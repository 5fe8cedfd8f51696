"""The English changed: which translations still hold?

Each old entry goes, at most once, to the unit it belongs to: the same text (wherever it moved to),
else the most similar text of the same kind in the same cell, else an obsolete one that is nearly
the same.  A translation whose English changed is kept and marked stale with the English that it
translates; one whose unit is gone becomes obsolete.  Where only code spans, numbers or URLs
changed, the translation follows, and its particles are fitted to the new words.

Read before: ``saem.l10n.catalog``, ``saem.l10n.carry``.  Read after: ``saem.l10n.assemble``.
Invariant: every translation and note that went in comes out (tests/notebooks/test_merge.py).
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
from collections.abc import Callable

import polib

from saem.l10n.carry import carry
from saem.l10n.catalog import basis, empty
from saem.l10n.glossary import Glossary
from saem.l10n.lint import particles
from saem.l10n.units import Unit

# Below this two texts have hardly more in common than any two of a lesson.
SIMILAR = 0.5
# What was given up is offered again only where it is nearly what is needed now.
NEARLY = 0.75


@dataclasses.dataclass
class Report:
    """How many units were kept, carried over, made stale, are new; entries made obsolete.

    ``offered`` counts those of the stale whose translation had been obsolete.
    """

    kept: int = 0
    carried: int = 0
    stale: int = 0
    new: int = 0
    obsolete: int = 0
    offered: int = 0


def merge(units: list[Unit], old: polib.POFile, glossary: Glossary | None = None
          ) -> tuple[polib.POFile, Report]:
    """The PO file for ``units``, with all that ``old`` knows; ``old`` is not changed.

    With the ``glossary``, particles after carried code are fitted to how it is read.
    """
    pool = [copy.deepcopy(entry) for entry in old]
    chosen = _match(units, pool)
    merged = empty(old.metadata.get("Language", ""))
    merged.metadata = dict(old.metadata)
    merged.header = old.header
    report = Report()
    for unit in units:
        merged.append(_updated(unit, chosen.get(unit), report, glossary))
    used = {id(entry) for entry in chosen.values()}
    for entry in pool:
        if id(entry) not in used and (entry.msgstr or entry.msgstr_plural or entry.tcomment):
            report.obsolete += not entry.obsolete
            merged.append(_retired(entry))
    return merged, report


def _match(units: list[Unit], pool: list[polib.POEntry]) -> dict[Unit, polib.POEntry]:
    """For each unit the old entry that is its own, if any."""
    chosen: dict[Unit, polib.POEntry] = {}
    free = list(pool)

    def take(fits: Callable[[Unit, polib.POEntry], bool]) -> None:
        for unit in units:
            if unit in chosen:
                continue
            for position, entry in enumerate(free):
                if fits(unit, entry):
                    chosen[unit] = free.pop(position)
                    break

    def same_text(unit: Unit, entry: polib.POEntry) -> bool:
        return unit.text in (entry.msgid, basis(entry)) and _kind(entry) == unit.kind

    take(lambda unit, entry: not entry.obsolete and entry.msgctxt == unit.context
         and unit.text == entry.msgid)
    take(lambda unit, entry: not entry.obsolete and same_text(unit, entry))
    take(lambda unit, entry: bool(entry.obsolete) and same_text(unit, entry))
    for near in (_alike_in_cell, _alike_obsolete):
        for unit, entry in _similar([u for u in units if u not in chosen], free, near):
            chosen[unit] = entry
            free.remove(entry)
    return chosen


def _alike_in_cell(unit: Unit, entry: polib.POEntry) -> float:
    """How well the entry of a unit of the same cell and kind fits; 0 if it does not."""
    if entry.obsolete or (_cell(entry), _kind(entry)) != (unit.cell, unit.kind):
        return 0.0
    carries = carry(basis(entry), unit.text, entry.msgstr) is not None
    ratio = _ratio(unit, entry)
    return ratio + carries if ratio >= SIMILAR or carries else 0.0


def _alike_obsolete(unit: Unit, entry: polib.POEntry) -> float:
    """How well an obsolete entry of the same kind fits, from whichever cell; 0 if it does not."""
    if not entry.obsolete or _kind(entry) != unit.kind:
        return 0.0
    ratio = _ratio(unit, entry)
    return ratio if ratio >= NEARLY else 0.0


def _ratio(unit: Unit, entry: polib.POEntry) -> float:
    return difflib.SequenceMatcher(None, basis(entry), unit.text, autojunk=False).ratio()


def _similar(units: list[Unit], free: list[polib.POEntry],
             near: Callable[[Unit, polib.POEntry], float]) -> list[tuple[Unit, polib.POEntry]]:
    """Pairs that are ``near``, the nearest first, each used once."""
    scored = [(-score, i, j) for i, unit in enumerate(units) for j, entry in enumerate(free)
              if (score := near(unit, entry))]
    pairs, left, right = [], set(), set()
    for _, i, j in sorted(scored):
        if i not in left and j not in right:
            left.add(i)
            right.add(j)
            pairs.append((units[i], free[j]))
    return pairs


def _updated(unit: Unit, entry: polib.POEntry | None, report: Report,
             glossary: Glossary | None) -> polib.POEntry:
    """The entry for ``unit``, made from the old one that is its own."""
    if entry is None:
        report.new += 1
        return polib.POEntry(msgctxt=unit.context, msgid=unit.text)
    before = basis(entry)
    was_stale, was_obsolete = bool(entry.previous_msgid), bool(entry.obsolete)
    entry.msgctxt, entry.msgid, entry.obsolete = unit.context, unit.text, False
    entry.previous_msgid = None
    if unit.text == before or not entry.msgstr:
        _set_fuzzy(entry, _fuzzy(entry) and not was_stale)
        report.kept += 1
        return entry
    carried = carry(before, unit.text, entry.msgstr)
    if carried is not None:
        fitted = particles.refit(carried, glossary) if glossary is not None else carried
        entry.msgstr = carried if carried == entry.msgstr else fitted
        _set_fuzzy(entry, _fuzzy(entry) and not was_stale)
        report.carried += 1
        return entry
    entry.previous_msgid = before
    _set_fuzzy(entry, True)
    report.stale += 1
    report.offered += was_obsolete
    return entry


def _retired(entry: polib.POEntry) -> polib.POEntry:
    """The entry as obsolete, beside the English that it does translate.

    An obsolete entry has no previous source: PO readers forget it.
    """
    if entry.previous_msgid:
        entry.msgid, entry.previous_msgid = basis(entry), None
        _set_fuzzy(entry, False)
    entry.obsolete = True
    return entry


def _set_fuzzy(entry: polib.POEntry, fuzzy: bool) -> None:
    entry.flags = [f for f in entry.flags if f != "fuzzy"] + ["fuzzy"] * fuzzy


def _fuzzy(entry: polib.POEntry) -> bool:
    return "fuzzy" in entry.flags


def _cell(entry: polib.POEntry) -> str:
    return (entry.msgctxt or "").split("|")[0]


def _kind(entry: polib.POEntry) -> str:
    return (entry.msgctxt or "||").split("|")[1]
