// Is what is parsed what JSON says, and is a history as a table what a spreadsheet may open?
import assert from "node:assert/strict";
import { test } from "node:test";
import { HISTORY } from "./page";
import { csv, parse } from "../src/renderer/model";

test("a cell that a spreadsheet would run is quoted, commas and quotes are kept", () => {
  const row = HISTORY.functions[0]!;
  const named = { ...row, summary: { ...row.summary, name: '=cmd("x"),1' } };
  const lines = csv({ ...HISTORY, functions: [named] }).split("\r\n");
  assert.equal(lines.length, row.records.length + 2);
  assert.ok(lines[1]!.startsWith(`"'=cmd(""x""),1",`));
});

test("parsing changes nothing", () => {
  assert.deepEqual(parse(JSON.stringify(HISTORY)), HISTORY);
  assert.deepEqual(parse('[1, null, "a", ["a", {"b": "a"}]]'), [1, null, "a", ["a", { b: "a" }]]);
});
