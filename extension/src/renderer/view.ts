// Which view shows this model?
//
// The one door that every shell uses: JSON in, an element out. What cannot be shown is said, in
// the reader's language, with what to do.
// Read before: history.ts, jaxpr.ts. Read after: the shells (../shells, ../lab).
// Invariant: `show` never throws (test/view.test.ts).
import { VERSION, type Model } from "../schema";
import type { Visit } from "./detail";
import { el } from "./dom";
import { HistoryView } from "./history";
import { JaxprView } from "./jaxpr";
import { dagreEngine, type LayoutEngine } from "./layout";
import { Locale } from "./locale";

export interface ShowOptions {
  readonly locale: Locale;
  readonly visit?: Visit;
  readonly engine?: LayoutEngine | Promise<LayoutEngine>;
}

/** The view of a model, in an element of class `saem`. */
export function show(model: unknown, options: ShowOptions): HTMLElement {
  const { locale } = options;
  const root = el("div", { class: "saem", lang: locale.language });
  try {
    root.appendChild(view(model as Partial<Model> | null, options));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    root.appendChild(notice(locale.say("badModel", { why })));
  }
  return root;
}

function view(model: Partial<Model> | null, options: ShowOptions): HTMLElement {
  const { locale, visit } = options;
  if (model?.version !== VERSION) {
    const got = String(model?.version ?? "?");
    return notice(locale.say("unknownModel", { have: VERSION, got }));
  }
  if (model.kind === "history") {
    return new HistoryView(model as Model & { kind: "history" }, { locale, visit }).element;
  }
  if (model.kind === "jaxpr") {
    const engine = options.engine ?? dagreEngine;
    return new JaxprView(model as Model & { kind: "jaxpr" }, { locale, visit, engine }).element;
  }
  throw new Error(`kind ${JSON.stringify(model.kind)}`);
}

/** A message where a view should be. */
export function notice(text: string): HTMLElement {
  return el("p", { class: "saem-notice", role: "note" }, text);
}

/** Parse JSON and show it. */
export function showJson(json: string, options: ShowOptions): HTMLElement {
  let model: unknown;
  try {
    model = JSON.parse(json);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return el(
      "div",
      { class: "saem", lang: options.locale.language },
      notice(options.locale.say("badModel", { why }))
    );
  }
  return show(model, options);
}
