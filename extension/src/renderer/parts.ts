// Which small parts do several views share?
//
// Buttons, lists of facts, framed panes and bars of a share: each looks the same wherever it is.
// Read before: dom.ts. Read after: card.ts, compiled.ts, jaxpr.ts.
// Invariant: a button whose label is a sign has its meaning as a name (test/views.test.ts).
import { el, type Attributes, type Child } from "./dom";

/** A button; `more` are further attributes, such as its class if it has one of its own. */
export function button(label: Child, act: () => void, more: Attributes = {}): HTMLButtonElement {
  return el("button", { type: "button", class: "saem-button", onclick: act, ...more }, label);
}

/** A button that shows a sign, such as "+", and is called `name`. */
export function signButton(sign: string, name: string, act: () => void): HTMLButtonElement {
  return button(sign, act, { title: name, "aria-label": name });
}

/** A list of facts. */
export function facts(...rows: Child[]): HTMLElement {
  return el("dl", { class: "saem-facts" }, rows);
}

/** One fact: its name and its value. */
export function fact(name: string, ...value: Child[]): HTMLElement {
  return el("div", { class: "saem-fact" }, el("dt", {}, name), el("dd", {}, ...value));
}

/** A framed part of a view under a title; `kind` is its class beside that of all panes. */
export function pane(kind: string, title: Child, body: Child, tools: Child = null): HTMLElement {
  return el(
    "div",
    { class: `saem-pane ${kind}`.trim() },
    el("div", { class: "saem-pane-title" }, el("h4", {}, title), tools),
    body
  );
}

/** A bar as long as `part`, from 0 to 1, of its room. */
export function share(part: number): HTMLElement {
  return el(
    "span",
    { class: "saem-share", "aria-hidden": "true" },
    el("span", { style: `width:${Math.round(100 * part)}%` })
  );
}
