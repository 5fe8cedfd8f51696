// Does the badge of a cell say what is in the history now?
import assert from "node:assert/strict";
import { test } from "node:test";
import { HISTORY, page } from "./page";
import { badges } from "../src/lab/cells";
import { Locale } from "../src/renderer/locale";

test("a badge is drawn anew when only the seconds changed, and else stays", () => {
  const row = HISTORY.functions[0]!;
  const record = row.records.find(r => r.kind === "compile" && r.caller?.cell_id)!;
  const node = page.createElement("div");
  const cell = { node, model: { id: record.caller!.cell_id } };
  const shown = (compile: number): Element => {
    const records = [{ ...record, seconds: { trace: 0, lower: 0, compile } }];
    const history = { ...HISTORY, functions: [{ ...row, records }] };
    badges({ content: { widgets: [cell] } } as never, history, new Locale("en"), () => undefined);
    assert.equal(node.children.length, 1);
    return node.children[0]!;
  };
  const first = shown(1);
  assert.equal(shown(1), first);
  assert.match(shown(2).getAttribute("title")!, /2 s/);
});
