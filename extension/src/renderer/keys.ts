// Which random key came from which, and was one used twice?
//
// Read before: detail.ts. Read after: view.ts.
// Invariant: a key that was used twice shows both places (test/views.test.ts).
import type { KeyNode, KeyUse, KeysModel, Place } from "../schema";
import { placeLabel, type Visit } from "./detail";
import { el, type Child } from "./dom";
import type { Locale } from "./locale";

/** Branches of more keys start folded, but for those with a key that was used twice. */
const OPEN = 200;
/** Deeper branches all do. */
const DEEP = 200;

export function drawKeys(model: KeysModel, locale: Locale, visit?: Visit): HTMLElement {
  const known = new Set(model.keys.map(k => k.id));
  const children = new Map<string | null, KeyNode[]>();
  for (const key of model.keys) {
    const parent = key.parent !== null && known.has(key.parent) ? key.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), key]);
  }
  const open = model.keys.length <= OPEN;
  const branch = (keys: readonly KeyNode[], depth = 0): HTMLElement =>
    el(
      "ul",
      { class: "saem-keys" },
      keys.map(key => {
        const below = children.get(key.id) ?? [];
        return el(
          "li",
          { class: key.reused ? "saem-key-node saem-reused" : "saem-key-node" },
          below.length > 0
            ? folding(
                head(key),
                [uses(key)],
                () => branch(below, depth + 1),
                depth < DEEP && (open || key.reused)
              )
            : [head(key), uses(key)]
        );
      })
    );
  // No <details>: the head holds a link to the key's place.
  // What is folded is drawn when it is unfolded: a chain of splits may be thousands of keys deep.
  const folding = (
    top: HTMLElement,
    inside: Child[],
    below: () => HTMLElement,
    opened: boolean
  ): Child[] => {
    const body = el("div", { hidden: !opened }, ...inside, opened && below());
    let complete = opened;
    const mark = el("button", { type: "button", class: "saem-key-fold" });
    const draw = (): void => {
      const word = locale.say(body.hidden ? "unfold" : "fold");
      mark.textContent = body.hidden ? "▸" : "▾";
      mark.setAttribute("aria-expanded", String(!body.hidden));
      mark.setAttribute("aria-label", word);
      mark.title = word;
    };
    mark.addEventListener("click", () => {
      body.hidden = !body.hidden;
      if (!complete) {
        complete = true;
        body.append(below());
      }
      draw();
    });
    draw();
    return [mark, top, body];
  };
  const line = (place: Place): HTMLElement =>
    el("code", { class: "saem-dim saem-key-line" }, place.text);
  const head = (key: KeyNode): HTMLElement =>
    el(
      "span",
      { class: "saem-key-head" },
      el("code", { class: "saem-key-words" }, key.key.replace(/(.{8})(?=.)/g, "$1 ")),
      el(
        "span",
        { class: "saem-dim" },
        locale.say(`key.${key.action}`),
        key.action === "split" && ` [${key.number}]`
      ),
      key.place && [placeLabel(key.place, locale, visit), line(key.place)]
    );
  const uses = (key: KeyNode): HTMLElement | null =>
    key.uses.length === 0
      ? null
      : el(
          "ul",
          { class: "saem-uses" },
          key.uses.map(use => el("li", { class: use.reused ? "saem-reuse" : "" }, useLine(use)))
        );
  const useLine = (use: KeyUse): Node[] => [
    el("span", { "aria-hidden": "true" }, use.reused ? "⚠ " : use.action === "split" ? "⇉ " : "● "),
    el(
      "span",
      {},
      locale.say(use.reused ? "key.reused" : use.action === "split" ? "key.divided" : "key.used"),
      " "
    ),
    ...(use.place ? [placeLabel(use.place, locale, visit), line(use.place)] : [])
  ];
  return el(
    "section",
    {},
    el(
      "p",
      { class: model.reused > 0 ? "saem-notice saem-failed-note" : "saem-dim" },
      model.keys.length === 0
        ? locale.say("key.none")
        : model.reused > 0
          ? locale.say("keys.reused", { n: model.reused })
          : locale.say("keys.fine")
    ),
    branch(children.get(null) ?? []),
    model.dropped > 0 && el("p", { class: "saem-dim" }, locale.say("dropped"))
  );
}
