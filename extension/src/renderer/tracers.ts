// What does each line of a traced function see?
//
// The learner's source with, beside each line, what it assigned: how much of the value is known
// (plain, array, concrete, abstract), its type and who watches it; where Python asked for numbers,
// and which loops were unrolled.
// Read before: dom.ts. Read after: view.ts, ../lab/hints.ts.
// Invariant: kind is shown by shape and word, not by colour alone (test/views.test.ts).
import type { SeenFunction, SeenValue, TracersModel } from "../schema";
import { engineMessage, errorMeaning } from "./cards";
import { el, prose, type Child } from "./dom";
import type { Locale } from "./locale";
import { pane } from "./parts";

const SIGNS = { plain: "○", array: "■", concrete: "◆", abstract: "◇" } as const;
const KINDS = ["plain", "array", "concrete", "abstract"] as const;

/** One value: its sign, name, type and transformations. */
function valueChip(value: SeenValue, locale: Locale): HTMLElement {
  return el(
    "span",
    {
      class: `saem-value saem-is-${value.kind}`,
      title: [locale.say(`xray.${value.kind}`), ...value.stack].join(" ▸ ")
    },
    el("span", { class: "saem-sign", "aria-label": locale.say(`xray.${value.kind}`) },
      SIGNS[value.kind]),
    el("b", {}, value.name),
    el("code", {}, value.type),
    value.stack.length > 0 && el("span", { class: "saem-stack" }, value.stack.join(" ▸ "))
  );
}

/** The same as plain text, for an editor's inlay hint. */
export function valueHint(value: SeenValue): string {
  const stack = value.stack.length > 0 ? ` (${value.stack.join(" ▸ ")})` : "";
  return `${SIGNS[value.kind]} ${value.name}: ${value.type}${stack}`;
}

export function drawTracers(model: TracersModel, locale: Locale): HTMLElement {
  return el(
    "section",
    { class: "saem-tracers" },
    el(
      "header",
      { class: "saem-bar" },
      el("code", { class: "saem-title" }, model.title || locale.say("xray.title")),
      el(
        "ul",
        { class: "saem-legend", "aria-label": locale.say("xray.legend") },
        KINDS.map(kind =>
          el(
            "li",
            { class: `saem-is-${kind}` },
            el("span", { class: "saem-sign", "aria-hidden": "true" }, SIGNS[kind]),
            locale.say(`xray.${kind}`)
          )
        )
      )
    ),
    model.functions.length === 0 &&
      el("p", { class: "saem-notice" }, prose(locale.say("xray.none"))),
    model.functions.map(f => drawFunction(f, locale)),
    model.error !== null &&
      el(
        "div",
        { class: "saem-notice saem-failed-note", role: "note" },
        el("b", {}, locale.say("xray.ended")),
        // Notebooks saved by earlier versions have the engine's message alone.
        model.explained
          ? [errorMeaning(model.explained, locale), engineMessage(model.explained, locale)]
          : el("pre", { class: "saem-message" }, model.error)
      )
  );
}

/** The line that names a function's arguments: its `def`, below the decorators. */
export function defLine(seen: SeenFunction): number | undefined {
  const def = seen.lines.find(({ text }) => /^\s*(async\s+)?def\b/.test(text));
  return (def ?? seen.lines[0])?.line;
}

function drawFunction(seen: SeenFunction, locale: Locale): HTMLElement {
  const def = defLine(seen);
  const decorated = (line: number): boolean => def !== undefined && line <= def;
  return pane(
    "saem-xray",
    [el("code", {}, seen.name), ` · ${locale.pick(seen.label)} · ${seen.stack.join(" ▸ ")}`],
    el(
      "div",
      { class: "saem-scroll saem-code", tabindex: 0 },
      seen.lines.map(line => {
        const values = line.line === def ? [...seen.arguments, ...line.values] : line.values;
        const attempts = seen.attempts.filter(a => a.line === line.line);
        const loops = seen.loops.filter(l => l.line === line.line);
        const returns = /^\s*return\b/.test(line.text) && line.runs > 0 ? seen.result : null;
        return el(
          "div",
          { class: line.runs > 0 || decorated(line.line) ? "saem-seen" : "saem-seen saem-unrun" },
          el("span", { class: "saem-number", "aria-hidden": "true" }, String(line.line)),
          el(
            "span",
            { class: "saem-text" },
            line.text,
            line.runs > seen.calls &&
              el(
                "span",
                { class: "saem-runs", title: locale.say("xray.runs", { n: line.runs }) },
                ` ×${line.runs}`
              )
          ),
          el(
            "span",
            { class: "saem-values" },
            values.map(v => valueChip(v, locale)),
            returns && valueChip({ ...returns, name: locale.say("xray.returns") }, locale),
            attempts.map(
              (a): Child =>
                el(
                  "span",
                  { class: a.allowed ? "saem-attempt" : "saem-attempt saem-refused" },
                  a.allowed ? "✓ " : "✗ ",
                  prose(locale.pick(a.says))
                )
            ),
            loops.map(l => el("span", { class: "saem-unrolled" }, "↻ ", prose(locale.pick(l.says))))
          )
        );
      })
    ),
    seen.calls > 1 && el("span", { class: "saem-dim" }, locale.say("xray.calls", { n: seen.calls }))
  );
}
