// Which view shows this model?
//
// The one door that every shell uses: JSON in, an element out. What cannot be shown is said, in
// the reader's language, with what to do.
// Read before: history.ts, jaxpr.ts. Read after: the shells (../shells, ../lab).
// Invariant: `show` never throws (test/view.test.ts).
import { VERSION, type Model } from "../schema";
import { drawError, drawGates, type OpenLesson } from "./cards";
import { drawCompiled } from "./compiled";
import type { Visit } from "./detail";
import { drawDevices } from "./devices";
import { el } from "./dom";
import { HistoryView } from "./history";
import { JaxprView } from "./jaxpr";
import { drawKeys } from "./keys";
import { dagreEngine, type LayoutEngine } from "./layout";
import { Locale } from "./locale";
import { parse } from "./model";
import { StepsView } from "./steps";
import { drawTracers } from "./tracers";
import { drawAutodiff, drawBench, type Choose } from "./transformed";

export interface ShowOptions {
  readonly locale: Locale;
  readonly visit?: Visit;
  readonly engine?: LayoutEngine | Promise<LayoutEngine>;
  /** Set where a lesson can be opened. */
  readonly lesson?: OpenLesson;
  /** Set where the transformations of a bench can be changed. */
  readonly choose?: Choose;
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

function view(any: Partial<Model> | null, options: ShowOptions): HTMLElement {
  const { locale, visit } = options;
  if (any?.version !== VERSION) {
    const got = String(any?.version ?? "?");
    return notice(locale.say("unknownModel", { have: VERSION, got }));
  }
  const model = any as Model;
  const jaxpr = { locale, visit, engine: options.engine ?? dagreEngine };
  switch (model.kind) {
    case "history":
      return new HistoryView(model, { locale, visit }).element;
    case "jaxpr":
      return new JaxprView(model, jaxpr).element;
    case "tracers":
      return drawTracers(model, locale);
    case "steps":
      return new StepsView(model, jaxpr).element;
    case "autodiff":
      return drawAutodiff(model, jaxpr);
    case "bench":
      return drawBench(model, jaxpr, options.choose);
    case "compiled":
      return drawCompiled(model, jaxpr);
    case "devices":
      return drawDevices(model, locale, visit);
    case "keys":
      return drawKeys(model, locale, visit);
    case "error":
      return drawError(model, locale, visit, options.lesson);
    case "gates":
      return drawGates(model, locale);
    default:
      throw new Error(`kind ${JSON.stringify((model as { kind?: unknown }).kind)}`);
  }
}

/** A message where a view should be. */
export function notice(text: string): HTMLElement {
  return el("p", { class: "saem-notice", role: "note" }, text);
}

/** Parse JSON and show it. */
export function showJson(json: string, options: ShowOptions): HTMLElement {
  let model: unknown;
  try {
    model = parse(json);
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
