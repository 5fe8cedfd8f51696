"""Does a history of 10,000 events stay small in the page and scroll smoothly?

Read before: ``extension/src/renderer/history.ts``, ``sight.ts``.  Read after: nothing.
Invariant: the records differ as those of a real session do: texts, places, times and signatures.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib

import pytest
from playwright.sync_api import CDPSession, Page, expect
from test_lens_views import write

from saem.observe import schema
from saem.observe.schema import Text
from saem.observe.typed_json import from_json

SAMPLES = pathlib.Path(__file__).parents[2] / "extension" / "test" / "samples"
EVENTS = 10_000
FRAME = 1000 / 60
MEGABYTE = 1 << 20


def history(functions: int) -> schema.HistoryModel:
    """A history of 10,000 records, in so many rows."""
    text = (SAMPLES / "history.json").read_text(encoding="utf-8")
    sample = from_json(schema.HistoryModel, json.loads(text))
    kept = [r for f in sample.functions for r in f.records]
    rows = []
    for number in range(functions):
        records = []
        for at in range(EVENTS // functions):
            like = kept[at % len(kept)]
            line = at % 40 + 1
            place = like.caller and dataclasses.replace(
                like.caller, line=line, end_line=line,
                label=Text(f"cell {number}, line {line}", f"셀 {number} {line}행"))
            records.append(dataclasses.replace(
                like, id=number * EVENTS + at, time=like.time + at, caller=place,
                signature=f"x: f32[{at + 1},{number}]"))
        summary = dataclasses.replace(
            sample.functions[0].summary, key=f"f{number}", name=f"function_{number}")
        rows.append(schema.FunctionHistory(summary, tuple(records), 0))
    return dataclasses.replace(sample, functions=tuple(rows))


def used(session: CDPSession) -> float:
    """Megabytes of objects and elements on the page, after a collection."""
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")
    return (heap["usedSize"] + heap.get("embedderHeapUsedSize", 0)) / MEGABYTE


def work(session: CDPSession) -> float:
    """Milliseconds of processor time that the page's main thread has worked so far."""
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    return metrics["TaskDuration"] * 1000


# Down the page and, at its end, up again; the gaps between frames, in order of size.
SCROLL = """async () => {
  const gaps = [];
  let last = performance.now();
  for (let i = 0; i < 120; i += 1) {
    const before = window.scrollY;
    window.scrollBy(0, window.step ??= 90);
    if (window.scrollY === before) window.step = -window.step;
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  return gaps.sort((a, b) => a - b);
}"""


@pytest.mark.parametrize("functions", [20, 500])
def test_ten_thousand_events(functions: int, new_page, static_files, tmp_path, picture) -> None:
    """Under 20 MB beyond a page with one event; sixty frames a second while it scrolls."""
    few = history(functions)
    few = dataclasses.replace(few, functions=(
        dataclasses.replace(few.functions[0], records=few.functions[0].records[:1]),))
    page: Page = new_page()
    session = page.context.new_cdp_session(page)
    page.goto(write(tmp_path, few, "en"))
    expect(page.locator(".saem-mark")).to_have_count(1)
    base = used(session)
    page.goto(write(tmp_path, history(functions), "en"))
    expect(page.locator(".saem-row")).to_have_count(functions)
    assert page.locator(".saem-mark").count() <= 2_500
    # When a frame comes is the machine's affair; the processor's time that it takes is ours. Other
    # work beside makes a processor slower, never faster: the quickest of several scrolls counts.
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    each = []
    for _ in range(6):
        before = work(session)
        gaps = page.evaluate(SCROLL)
        each.append((work(session) - before) / len(gaps))
        if min(each) < FRAME and len(each) > 1:
            break
    more = used(session) - base
    print(f"{functions} rows: {more:.1f} MB more; {min(each):.1f} ms of work a frame in the best "
          f"of {len(each)} scrolls, in the last a frame every {gaps[len(gaps) // 2]:.1f} ms")
    assert more < 20
    assert min(each) < FRAME
    last = page.locator(".saem-row").last
    last.scroll_into_view_if_needed()
    expect(last.locator(".saem-mark").last).to_be_visible()
    last.locator(".saem-mark").last.click()
    expect(last.locator(".saem-detail")).to_be_visible()
    if functions == 20:
        picture(last, "history-long")
