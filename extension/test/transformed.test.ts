// Can the two passes of reverse mode be used with the keyboard alone?
import assert from "node:assert/strict";
import { test } from "node:test";
import { JAXPR, page, press, put } from "./page";
import { dagreEngine } from "../src/renderer/layout";
import { Locale } from "../src/renderer/locale";
import { drawAutodiff } from "../src/renderer/transformed";
import { VERSION } from "../src/schema";

test("Tab reaches one item of a list, arrows the others; Enter and Space keep what is lit", () => {
  const body = JAXPR.body.equations[0]!.nested[0]!.body;
  const saved = ["e0.0.1", "e0.0.3"].map(maker => ({
    variable: null, name: "h", type: "f32[4]", bytes: 16, maker, readers: [], place: null
  }));
  const jaxpr = { ...JAXPR, body: { ...JAXPR.body, equations: body.equations } };
  const { environment } = JAXPR;
  const view = put(drawAutodiff(
    { kind: "autodiff", version: VERSION, jaxpr, saved, bytes: 32, environment },
    { locale: new Locale("en"), engine: dagreEngine }
  ));
  const reached = [...view.querySelectorAll<HTMLElement>(".saem-passes [tabindex='0']")];
  assert.deepEqual(reached.map(node => node.dataset.eqn), ["e0.0.0", "e0.0.1", "e0.0.5"]);
  const [first, second, third] = reached as [HTMLElement, HTMLElement, HTMLElement];
  const ways = [[first, "e0.0.1", "Enter"], [second, "e0.0.3", " "], [third, "e0.0.6", "Enter"]];
  for (const [node, next, key] of ways as [HTMLElement, string, string][]) {
    node.focus();
    press(node, "ArrowDown");
    assert.equal(page.activeElement?.getAttribute("data-eqn"), next);
    assert.equal(page.activeElement?.getAttribute("tabindex"), "0");
    assert.equal(node.tabIndex, -1);
    press(page.activeElement, key);
    (page.activeElement as HTMLElement).blur();
    assert.ok(view.querySelector(`.saem-passes [data-eqn="${next}"]`)!.matches(".saem-on"));
  }
});
