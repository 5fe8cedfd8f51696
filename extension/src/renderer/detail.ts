// What is shown of one mark: what happened, why, what it cost, and what would avoid it?
//
// Read before: marks.ts. Read after: history.ts.
// Invariant: each sentence is the kernel's; here only its place on the page is decided.
import type { Cost, Place, Reason, Record, Seconds } from "../schema";
import { el, prose, type Child } from "./dom";
import type { Locale } from "./locale";
import { glyph } from "./marks";
import { fact, facts } from "./parts";

/** Called with a place in the source that the reader chose. */
export type Visit = (place: Place) => void;

/** A place by name: a link where the shell can go there (a cell), else plain words. */
export function placeLabel(place: Place, locale: Locale, visit?: Visit): HTMLElement {
  const name = locale.pick(place.label);
  return visit && (place.cell_id !== null || place.cell !== null)
    ? el(
        "button",
        { type: "button", class: "saem-place saem-link", onclick: () => visit(place) },
        name
      )
    : el("span", { class: "saem-place" }, name);
}

/** Why, in sentences: the old and the new value side by side, and what would avoid it. */
function reasonList(reasons: readonly Reason[], locale: Locale): HTMLElement {
  return el(
    "ul",
    { class: "saem-reasons" },
    reasons.map(reason =>
      el(
        "li",
        { "data-tag": reason.tag },
        el("p", { class: "saem-says" }, prose(locale.pick(reason.says))),
        change(reason, locale),
        locale.pick(reason.advice) &&
          el(
            "p",
            { class: "saem-advice" },
            el("span", { class: "saem-key" }, locale.say("advice")),
            " ",
            prose(locale.pick(reason.advice))
          )
      )
    )
  );
}

function change(reason: Reason, locale: Locale): Child {
  if (reason.old === null || reason.new === null) {
    return null;
  }
  return el(
    "p",
    { class: "saem-change" },
    reason.path && el("span", { class: "saem-path" }, reason.path),
    el("code", { class: "saem-old", title: locale.say("old") }, reason.old),
    el("span", { class: "saem-arrow", "aria-hidden": "true" }, "→"),
    el("code", { class: "saem-new", title: locale.say("new") }, reason.new)
  );
}

const STEPS = ["trace", "lower", "compile"] as const;

/** Time as a bar of its steps, each with its figure. */
function timeBar(seconds: Seconds, locale: Locale): Child {
  const steps = STEPS.map(step => ({ step, time: seconds[step] })).filter(
    (s): s is { step: (typeof STEPS)[number]; time: number } => s.time !== null
  );
  if (steps.length === 0) {
    return null;
  }
  return el(
    "div",
    {},
    el(
      "div",
      { class: "saem-time-bar", "aria-hidden": "true" },
      steps.map(({ step, time }) =>
        el("span", { class: `saem-step-${step}`, style: `flex-grow:${Math.max(time * 1e6, 1)}` })
      )
    ),
    el(
      "ul",
      { class: "saem-time-legend" },
      steps.map(({ step, time }) =>
        el(
          "li",
          { class: `saem-step-${step}` },
          el("span", { class: "saem-swatch", "aria-hidden": "true" }),
          `${locale.say(`seconds.${step}`)} `,
          el("b", {}, locale.seconds(time))
        )
      )
    )
  );
}

/** What XLA estimates, leaving out what it does not say. */
export function costRows(cost: Cost, locale: Locale): [string, string][] {
  const rows: [string, string][] = [];
  if (cost.flops !== null) {
    rows.push([locale.say("cost.flops"), locale.flops(cost.flops)]);
  }
  const sizes = [
    "bytes_accessed",
    "argument_bytes",
    "output_bytes",
    "temp_bytes",
    "code_bytes"
  ] as const;
  for (const size of sizes) {
    const value = cost[size];
    if (value !== null) {
      rows.push([locale.say(`cost.${size}`), locale.bytes(value)]);
    }
  }
  return rows;
}

function recordFacts(record: Record, locale: Locale, visit?: Visit): HTMLElement {
  const { caller, cost } = record;
  return facts(
    caller &&
      fact(
        locale.say("call"),
        placeLabel(caller, locale, visit),
        caller.text && el("code", { class: "saem-source-line" }, caller.text)
      ),
    record.signature &&
      fact(locale.say("signature"), el("code", {}, record.signature)),
    record.equations !== null &&
      fact(locale.say("equations"), locale.count(record.equations)),
    cost && costRows(cost, locale).map(([name, value]) => fact(name, value)),
    record.program &&
      fact(
        locale.say("programId"),
        el("code", { title: record.program }, record.program.slice(0, 10))
      )
  );
}

/** Everything about one record. */
export function recordDetail(record: Record, locale: Locale, visit?: Visit): HTMLElement {
  return el(
    "div",
    { class: `saem-detail saem-kind-${record.kind}`, "data-detail": record.id },
    el(
      "p",
      { class: "saem-headline" },
      glyph(record.kind),
      el("span", {}, prose(locale.pick(record.headline)))
    ),
    record.reasons.length > 0 && reasonList(record.reasons, locale),
    timeBar(record.seconds, locale),
    recordFacts(record, locale, visit)
  );
}
