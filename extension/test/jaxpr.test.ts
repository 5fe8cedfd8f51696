// Do text, graph and source fold and light up together?
import assert from "node:assert/strict";
import { test } from "node:test";
import { Event, JAXPR, click, page, press, put, texts } from "./page";
import { JaxprView } from "../src/renderer/jaxpr";
import { dagreEngine } from "../src/renderer/layout";
import { Locale } from "../src/renderer/locale";
import { folds } from "../src/renderer/model";

function view(): HTMLElement {
  return put(new JaxprView(JAXPR, { locale: new Locale("en"), engine: dagreEngine }).element);
}

function visible(element: HTMLElement): string[] {
  const lines = element.querySelectorAll<HTMLElement>(".saem-pane-text .saem-line");
  return [...lines]
    .filter(line => !line.hidden)
    .map(line => line.querySelector(".saem-text")?.textContent ?? "");
}

test("the text is the tokens', line by line", () => {
  const written = JAXPR.lines.map(l => " ".repeat(l.indent) + l.tokens.map(t => t.text).join(""));
  assert.deepEqual(visible(view()), written);
});

test("folding hides an equation's lines after its first, and unfolding shows them", () => {
  const element = view();
  const all = visible(element);
  click(element.querySelector(".saem-fold[data-fold='e0']"));
  assert.deepEqual(visible(element), [all[0], all[1], all.at(-2), all.at(-1)]);
  assert.deepEqual(texts(element, ".saem-folded"), ["8 equations folded"]);
  assert.equal(element.querySelectorAll("g.saem-node[data-eqn]").length, 2);
  press(page.activeElement, "ArrowRight");
  assert.deepEqual(visible(element), all);
  assert.equal(element.querySelectorAll("g.saem-node[data-eqn]").length, 10);
});

test("Tab reaches one equation, before and after a search", () => {
  const element = view();
  const reached = () => element.querySelectorAll(".saem-pane-text .saem-line[tabindex='0']").length;
  assert.equal(reached(), 1);
  for (const query of ["mul", ""]) {
    const box = element.querySelector<HTMLInputElement>("input.saem-search")!;
    box.value = query;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    assert.equal(reached(), 1);
  }
});

test("arrows go through a program that is not all on the page, over lines without equation", () => {
  const first = JAXPR.body.equations[0]!;
  const equations = Array.from({ length: 500 }, (_, i) => ({ ...first, id: `e${i}`, nested: [] }));
  const lines = equations.flatMap(({ id }) => [
    { indent: 0, tokens: [], equation: id },
    { indent: 0, tokens: [], equation: null }
  ]);
  const model = { ...JAXPR, lines, body: { ...JAXPR.body, equations } };
  const engine = new Promise<never>(() => {});
  const { element } = new JaxprView(model, { locale: new Locale("en"), engine });
  put(element);
  element.querySelector<HTMLElement>(".saem-pane-text .saem-line[tabindex='0']")!.focus();
  for (let i = 0; i < 100; i += 1) {
    press(page.activeElement, "ArrowDown");
  }
  assert.equal(page.activeElement?.getAttribute("data-eqn"), "e100");
  press(page.activeElement, "ArrowUp");
  assert.equal(page.activeElement?.getAttribute("data-eqn"), "e99");
});

test("a source line lights its equations in text and graph; Escape darkens what was kept", () => {
  const element = view();
  const line = element.querySelector<HTMLElement>(".saem-pane-source .saem-line:nth-child(3)")!;
  line.dispatchEvent(new Event("pointerover", { bubbles: true }));
  const lit = [...element.querySelectorAll(".saem-pane-text .saem-on")].map(n =>
    n.getAttribute("data-eqn")
  );
  assert.deepEqual(lit, ["e0.0.4", "e0.0.5"]);
  assert.equal(element.querySelectorAll("g.saem-node.saem-on").length, 2);
  element.dispatchEvent(new Event("pointerleave"));
  assert.equal(element.querySelectorAll(".saem-on").length, 0);
  click(line);
  element.dispatchEvent(new Event("pointerleave"));
  assert.ok(element.querySelectorAll(".saem-on").length > 0);
  press(line, "Escape");
  assert.equal(element.querySelectorAll(".saem-on").length, 0);
});

test("an equation is described by its own facts", () => {
  const element = view();
  const line = element.querySelector(".saem-line[data-eqn='e0.0.5']")!;
  line.dispatchEvent(new Event("pointerover", { bubbles: true }));
  const card = element.querySelector(".saem-card")!.textContent ?? "";
  for (const part of ["mul", "2.0:f32[]", "h:f32[4]", "jit ▸ grad ▸ transpose", "cell 3, line 3"]) {
    assert.ok(card.includes(part), `${part} in ${card}`);
  }
});

test("backward equations are marked in text and graph", () => {
  const element = view();
  assert.equal(element.querySelectorAll(".saem-line.saem-backward").length, 3);
  assert.equal(element.querySelectorAll("g.saem-node.saem-backward").length, 3);
});

test("a jaxpr that stands in front folds without the lines between it and its equation", () => {
  const [outer, ...others] = JAXPR.body.equations;
  const inner = { ...others.at(-1)!, id: "e0.0.0", nested: [] };
  const body = { ...JAXPR.body, equations: [{ ...outer!, id: "e0", nested: [
    { label: "jaxpr", body: { ...JAXPR.body, equations: [inner] } }
  ] }] };
  const owners = ["e0", "e0.0.0", "e0", null, "e0", null];
  const lines = owners.map(equation => ({ indent: 0, tokens: [], equation }));
  const ranges = folds(lines, body).map(f => [f.equation.id, f.first, f.last]);
  assert.deepEqual(ranges, [["e0", 0, 2]]);
});

test("the sources of libraries stand folded behind the text, where there are cells", () => {
  const label = { en: "loss.py", ko: "loss.py" };
  const library = { file: "/lib/loss.py", label, first_line: 1, lines: ["return x"] };
  const model = { ...JAXPR, sources: [library, ...JAXPR.sources] };
  const { element } = new JaxprView(model, { locale: new Locale("en"), engine: dagreEngine });
  const panes = [...element.querySelectorAll(".saem-column:first-child > .saem-pane")];
  assert.deepEqual(
    panes.map(pane => `${pane.tagName} ${/saem-pane-(\w+)/.exec(pane.className)![1]}`),
    ["DIV source", "DIV text", "DETAILS source"]
  );
  assert.match(panes[2]!.textContent ?? "", /loss\.py.*return x/);
});
