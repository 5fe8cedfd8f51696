// Does the history show one mark per record, tell the chosen one, and stay what it was as it grows?
import assert from "node:assert/strict";
import { test } from "node:test";
import { HISTORY, click, page, press, put, texts } from "./page";
import { HistoryView } from "../src/renderer/history";
import { Locale } from "../src/renderer/locale";
import { KINDS, glyph } from "../src/renderer/marks";
import { receive, telling } from "../src/renderer/model";
import { OPERATIONS } from "../src/schema";

const en = { locale: new Locale("en") };

test("one row per function, one mark per record", () => {
  const { element } = new HistoryView(HISTORY, en);
  assert.deepEqual(texts(element, ".saem-name"), ["step", "normalize"]);
  const marks = [...element.querySelectorAll<HTMLElement>("[data-record]")];
  assert.deepEqual(
    marks.map(m => Number(m.dataset.record)),
    [1, 2, 4, 5, 7, 3, 6, 8]
  );
  assert.equal(element.querySelectorAll(".saem-row .saem-mark.saem-kind-compile").length, 3);
});

test("the column of a run of hits is as wide as its count, in every row", () => {
  const [first, second] = HISTORY.functions;
  const [record, ...others] = first!.records;
  const many = { ...first!, records: [{ ...record!, count: 12345 }, ...others] };
  const { element } = new HistoryView({ ...HISTORY, functions: [many, second!] }, en);
  const tracks = [...element.querySelectorAll<HTMLElement>(".saem-track")];
  const widths = tracks.map(track =>
    track.getAttribute("style")!.match(/minmax\(\d+px/g)!.map(width => width.slice(7))
  );
  // ×12.3K: six letters of 10 px beside the glyph.
  assert.ok(parseInt(widths[0]![0]!) >= 16 + 6 * 6, widths[0]![0]);
  assert.equal(widths[0]![2], "22px");
  assert.deepEqual(widths[0], widths[1]);
});

test("every kind of mark has a shape of its own", () => {
  const shapes = KINDS.map(kind => glyph(kind).querySelector("path")?.getAttribute("d"));
  assert.equal(new Set(shapes).size, 5);
});

test("a chosen mark tells its reason, in the reader's language", () => {
  for (const [language, says] of [
    ["en", "Argument x changed its shape."],
    ["ko", "인자 x의 형상이 바뀌었습니다."]
  ] as const) {
    const view = new HistoryView(HISTORY, { locale: new Locale(language) });
    put(view.element);
    click(view.element.querySelector("[data-record='4']"));
    const detail = view.element.querySelector("[data-detail='4']")!;
    assert.deepEqual(texts(detail, ".saem-says"), [says]);
    assert.deepEqual(texts(detail, ".saem-old, .saem-new"), ["f32[4,3]", "f32[5,3]"]);
    assert.equal(page.activeElement?.getAttribute("data-record"), "4");
    click(view.element.querySelector("[data-close]"));
    assert.equal(view.element.querySelector(".saem-detail"), null);
  }
});

test("arrow keys walk along a row and stop at its ends", () => {
  const view = new HistoryView(HISTORY, en);
  put(view.element);
  view.choose(1);
  press(page.activeElement, "ArrowRight");
  assert.equal(page.activeElement?.getAttribute("data-record"), "2");
  press(page.activeElement, "End");
  press(page.activeElement, "ArrowRight");
  assert.equal(page.activeElement?.getAttribute("data-record"), "7");
  press(page.activeElement, "Escape");
  assert.equal(view.element.querySelector(".saem-detail"), null);
});

test("a record with a known id replaces, another is added, and the old model stays", () => {
  const before = JSON.stringify(HISTORY);
  const row = HISTORY.functions[0]!;
  const renewed = { ...row.records[0]!, kind: "found" as const };
  const message = { type: "append" as const, function: row.summary, record: renewed };
  const after = receive(HISTORY, message);
  assert.equal(after.functions[0]!.records.length, 5);
  assert.equal(after.functions[0]!.records[0]!.kind, "found");
  const more = receive(after, { ...message, record: { ...renewed, id: 9 } });
  assert.equal(more.functions[0]!.records.length, 6);
  const summary = { ...row.summary, key: "other" };
  assert.equal(receive(more, { ...message, function: summary }).functions.length, 3);
  assert.equal(JSON.stringify(HISTORY), before);
});

test("growing keeps the chosen mark and the focus", () => {
  const view = new HistoryView(HISTORY, en);
  put(view.element);
  view.choose(4);
  const row = HISTORY.functions[1]!;
  const record = { ...row.records[0]!, id: 10 };
  view.update(receive(HISTORY, { type: "append", function: row.summary, record }));
  assert.ok(view.element.querySelector("[data-record='10']"));
  assert.ok(view.element.querySelector("[data-detail='4']"));
  assert.equal(page.activeElement?.getAttribute("data-record"), "4");
});

test("without a function it says that nothing was traced", () => {
  const { element } = new HistoryView({ ...HISTORY, functions: [] }, en);
  assert.equal(element.textContent, "Nothing was traced yet.");
});

test("of many marks the newest are drawn, older ones when asked for, the chosen one always", () => {
  const row = HISTORY.functions[0]!;
  const records = Array.from({ length: 350 }, (_, i) => ({ ...row.records[0]!, id: 100 + i }));
  const long = { ...HISTORY, functions: [{ ...row, records }] };
  const view = new HistoryView(long, en);
  put(view.element);
  const marks = (): number => view.element.querySelectorAll("[data-record]").length;
  assert.equal(marks(), 100);
  assert.deepEqual(texts(view.element, ".saem-older"), ["250 older marks"]);
  view.choose(110);
  assert.equal(marks(), 340);
  view.choose(null);
  click(view.element.querySelector(".saem-older"));
  assert.equal(marks(), 350);
  assert.equal(view.element.querySelector(".saem-older"), null);
});

test("a record that comes leaves the other rows as they were", () => {
  const view = new HistoryView(HISTORY, { ...en, narrow: true });
  const [first, second] = view.element.querySelectorAll(".saem-row");
  const { summary, records } = HISTORY.functions[1]!;
  const record = { ...records[0]!, id: 10 };
  view.update(receive(HISTORY, { type: "append", function: summary, record }), {
    ...en,
    narrow: true
  });
  const after = view.element.querySelectorAll(".saem-row");
  assert.equal(after[0], first);
  assert.notEqual(after[1], second);
});

test("the row of the library's operations is named in the reader's language", () => {
  const [row] = HISTORY.functions;
  const summary = { ...row!.summary, key: OPERATIONS, name: "eager operations" };
  for (const [language, name] of [
    ["en", "eager operations"],
    ["ko", "라이브러리 연산"]
  ] as const) {
    const model = { ...HISTORY, functions: [{ ...row!, summary }] };
    const { element } = new HistoryView(model, { locale: new Locale(language) });
    assert.deepEqual(texts(element, ".saem-name"), [name]);
  }
});

test("a row tells of a hit that was wrong, and of no other hit", () => {
  const [row] = HISTORY.functions;
  const [first] = row!.records;
  const hit = { ...first!, id: 90, kind: "hit", reasons: [] } as const;
  const stale = { ...hit, id: 91, reasons: first!.reasons.slice(0, 1) };
  assert.equal(telling({ ...row!, records: [first!, hit] })?.id, first!.id);
  assert.equal(telling({ ...row!, records: [first!, stale, hit] })?.id, stale.id);
});
