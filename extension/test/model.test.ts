// Is what is parsed what JSON says, and is a history as a table what a spreadsheet may open?
import assert from "node:assert/strict";
import { test } from "node:test";
import { HISTORY } from "./page";
import { csv, MOST_RECORDS, parse, receive } from "../src/renderer/model";

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

test("parsing changes nothing", () => {
  assert.deepEqual(parse(JSON.stringify(HISTORY)), HISTORY);
  assert.deepEqual(parse('[1, null, "a", ["a", {"b": "a"}]]'), [1, null, "a", ["a", { b: "a" }]]);
});
