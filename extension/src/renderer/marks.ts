// What does a mark on the timeline look like?
//
// One shape and one colour for each kind, so that neither alone must carry the meaning.
// Read before: dom.ts. Read after: history.ts.
// Invariant: every kind has its own shape (test/history.test.ts).
import type { Record } from "../schema";
import { el, svg } from "./dom";
import type { Locale } from "./locale";

export const KINDS: readonly Record["kind"][] = ["compile", "found", "trace", "hit", "failed"];

const SHAPES: { readonly [kind in Record["kind"]]: string } = {
  compile: "M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13z",
  found:
    "M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13z" +
    "M8 3.7a4.3 4.3 0 1 0 0 8.6a4.3 4.3 0 1 0 0-8.6z" +
    "M8 6a2 2 0 1 1 0 4a2 2 0 1 1 0-4z",
  trace: "M8 1L15 8L8 15L1 8zM8 4L4 8L8 12L12 8z",
  hit: "M6.4 3h3.2a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1h-3.2a1 1 0 0 1-1-1v-8a1 1 0 0 1 1-1z",
  failed:
    "M3.6 2L8 6.4L12.4 2L14 3.6L9.6 8L14 12.4L12.4 14L8 9.6L3.6 14L2 12.4L6.4 8L2 3.6z"
};

/** The shape of a kind, as an SVG that takes its colour from the kind's class. */
export function glyph(kind: Record["kind"]): SVGSVGElement {
  return svg(
    "svg",
    {
      class: `saem-glyph saem-kind-${kind}`,
      viewBox: "0 0 16 16",
      width: 16,
      height: 16,
      "aria-hidden": "true"
    },
    svg("path", { d: SHAPES[kind], "fill-rule": "evenodd" })
  );
}

/** Whether a call found its program and computed with an old value. */
export function isStale(record: Record): boolean {
  return record.kind === "hit" && record.reasons.length > 0;
}

/** The kinds of records that occur, each with its shape and its name. */
export function legend(records: readonly Record[], locale: Locale): HTMLElement {
  const kinds = new Set(records.filter(r => !isStale(r)).map(r => r.kind));
  const shown = KINDS.filter(kind => kinds.has(kind)).map(kind =>
    el("li", {}, glyph(kind), locale.say(`kind.${kind}`))
  );
  if (records.some(isStale)) {
    shown.push(el("li", { class: "saem-stale" }, glyph("hit"), locale.say("kind.stale")));
  }
  return el("ul", { class: "saem-legend", "aria-label": locale.say("legend") }, shown);
}
