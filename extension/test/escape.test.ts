// Does a hostile string stay text, wherever it stands?
import assert from "node:assert/strict";
import { test } from "node:test";
import { HISTORY, JAXPR, click, put } from "./page";
import { el } from "../src/renderer/dom";
import { show } from "../src/renderer/view";
import { HistoryView } from "../src/renderer/history";
import { Locale } from "../src/renderer/locale";

const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>`;
const FIXED = new Set(["kind", "colour", "id", "equation", "equations", "tag", "type"]);

/** The model with a hostile string in every place that a program's text can reach. */
function poison(value: unknown, key = ""): unknown {
  if (typeof value === "string") {
    return FIXED.has(key) ? value : HOSTILE;
  }
  if (Array.isArray(value)) {
    return value.map(item => poison(item, key));
  }
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, poison(v, k)]));
  }
  return value;
}

test("hostile strings make no elements and no handlers", () => {
  for (const model of [HISTORY, JAXPR]) {
    const root = put(show(poison(model), { locale: new Locale("en") }));
    click(root.querySelector("[data-record='4']"));
    click(root.querySelector(".saem-line[data-eqn]"));
    assert.ok(root.textContent?.includes(HOSTILE), "the text itself is shown");
    assert.equal(root.querySelectorAll("img, script, iframe, a").length, 0);
    for (const node of root.querySelectorAll("*")) {
      assert.ok([...node.attributes].every(a => !a.name.startsWith("on")));
    }
  }
});

test("marks of direction are shown by their codes", () => {
  const turned = "step\u202e(x)\u2066";
  const node = el("b", { title: turned, "data-key": turned }, turned);
  assert.equal(node.textContent, "step⟨U+202E⟩(x)⟨U+2066⟩");
  assert.equal(node.title, node.textContent);
  assert.equal(node.dataset.key, turned, "what is not read stays as it is");
});

test("what cannot be shown is said, not thrown", () => {
  const locale = new Locale("en");
  const other = show({ ...HISTORY, version: 999 }, { locale }).textContent ?? "";
  assert.match(other, /version 2 .* got 999.*pip install/);
  for (const model of [null, 3, "x", {}, { version: 2 }, { version: 2, kind: "history" }]) {
    assert.ok(show(model, { locale }).querySelector(".saem-notice"), JSON.stringify(model));
  }
  assert.ok(new HistoryView(HISTORY, { locale }).element.querySelector(".saem-row"));
});
