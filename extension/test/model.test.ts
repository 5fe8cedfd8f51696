// Is what is parsed what JSON says, and is a history as a table what a spreadsheet may open?
import assert from "node:assert/strict";
import { test } from "node:test";
import { HISTORY } from "./page";
import { csv, parse, receive } from "../src/renderer/model";
import { MOST_FUNCTIONS, MOST_RECORDS } from "../src/schema";

test("a cell that a spreadsheet would run is quoted, commas and quotes are kept", () => {
  const row = HISTORY.functions[0]!;
  const named = { ...row, summary: { ...row.summary, name: '=cmd("x"),1' } };
  const lines = csv({ ...HISTORY, functions: [named] }).split("\r\n");
  assert.equal(lines.length, row.records.length + 2);
  assert.ok(lines[1]!.startsWith(`"'=cmd(""x""),1",`));
});

test("of a function's records the oldest go when there are too many, and that is counted", () => {
  const row = HISTORY.functions[0]!;
  let history = { ...HISTORY, functions: [{ ...row, records: [row.records[0]!], dropped: 0 }] };
  for (let id = 1e6; id < 1e6 + MOST_RECORDS; id += 1) {
    const record = { ...row.records[0]!, id };
    history = receive(history, { type: "append", function: row.summary, record });
  }
  assert.equal(history.functions[0]!.records.length, MOST_RECORDS);
  assert.equal(history.functions[0]!.dropped, 1);
  assert.equal(history.functions[0]!.records.at(-1)!.id, 1e6 + MOST_RECORDS - 1);
});

test("of functions the one unused for longest goes when there are too many, and is counted", () => {
  const [row, record] = [HISTORY.functions[0]!, HISTORY.functions[0]!.records[0]!];
  const append = (key: number, time: number): void => {
    const summary = { ...row.summary, key: String(key) };
    const last = { ...record, id: time, time };
    history = receive(history, { type: "append", function: summary, record: last });
  };
  let history = { ...HISTORY, functions: [] as typeof HISTORY.functions, dropped: 0 };
  for (let key = 0; key < MOST_FUNCTIONS; key += 1) {
    append(key, key);
  }
  append(0, 1000);
  append(-1, 1001);
  const keys = history.functions.map(f => f.summary.key);
  assert.equal(keys.length, MOST_FUNCTIONS);
  assert.deepEqual([keys[0], keys[1], keys.at(-1)], ["0", "2", "-1"]);
  assert.equal(history.dropped, 1);
});

test("parsing changes nothing", () => {
  assert.deepEqual(parse(JSON.stringify(HISTORY)), HISTORY);
  assert.deepEqual(parse('[1, null, "a", ["a", {"b": "a"}]]'), [1, null, "a", ["a", { b: "a" }]]);
});
