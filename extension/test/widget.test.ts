// Does a widget keep the keyboard when its model changes?
import assert from "node:assert/strict";
import { test } from "node:test";
import { JAXPR, page, put } from "./page";
import { VERSION } from "../src/schema";
import { render } from "../src/shells/widget";

test("what takes the place of the focused control has the focus", () => {
  const bench = (...chips: string[]): unknown => ({
    kind: "bench", version: VERSION, title: "f", chips, offered: ["vmap"],
    stages: [{ label: "f", jaxpr: JAXPR, error: null, rows: [], saved: [], bytes: 0 }]
  });
  const traits: { [name: string]: unknown } = { model: bench(), locale: "en" };
  const drawings: (() => void)[] = [];
  const el = put(page.createElement("div"));
  render({
    el,
    model: {
      get: (name: string) => traits[name] as never,
      set: () => undefined,
      save_changes: () => undefined,
      on: (_: string, draw: () => void) => drawings.push(draw),
      off: () => undefined
    }
  });
  const change = (...chips: string[]): Element | null => {
    traits.model = bench(...chips);
    drawings[0]!();
    return page.activeElement;
  };
  assert.equal(change(), page.body);
  [...el.querySelectorAll("button")].find(b => b.textContent === "+ vmap")!.focus();
  assert.equal(change("grad")!.textContent, "+ vmap");
  const [first, last] = [...el.querySelectorAll<HTMLElement>(".saem-chip-act:enabled")];
  assert.equal(last, undefined);
  first!.focus();
  assert.equal(change()!.textContent, "+ vmap", "the chip is gone; the next control is there");
});
