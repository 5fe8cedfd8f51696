// What does a transformation do to a program, and what does reverse mode keep?
//
// The bench shows a function under a list of transformations, each program beside the one before;
// where the shell offers it, the list can be changed. The view of reverse mode shows what goes
// forward, what goes back, and what is kept between.
// Read before: jaxpr.ts. Read after: view.ts.
// Invariant: each equation of both sides is in exactly one row (tests/browser/test_lens_views.py).
import type {
  AutodiffModel,
  BenchModel,
  BenchStage,
  Equation,
  JaxprModel,
  Residual
} from "../schema";
import { el, OWN_KEYS, prose, type Child } from "./dom";
import { JaxprView, type JaxprOptions } from "./jaxpr";
import type { Locale } from "./locale";
import { button, pane, share } from "./parts";

/** Told the new list of transformations, innermost first. */
export type Choose = (chips: string[]) => void;

export function drawBench(
  model: BenchModel,
  options: JaxprOptions,
  choose?: Choose
): HTMLElement {
  const { locale } = options;
  return el(
    "section",
    {},
    el(
      "header",
      { class: "saem-bar" },
      el("span", { class: "saem-title" }, locale.say("bench.title")),
      el("code", {}, model.title)
    ),
    chipBar(model, locale, choose),
    model.stages.slice(1).map((stage, at) => drawStage(stage, model.stages[at]!, options)),
    model.stages.length === 1 && drawStage(model.stages[0]!, null, options)
  );
}

function chipBar(model: BenchModel, locale: Locale, choose?: Choose): HTMLElement {
  const { chips } = model;
  const move = (from: number, to: number): void => {
    const next = [...chips];
    const [chip] = next.splice(from, 1);
    next.splice(to, 0, chip!);
    choose?.(next);
  };
  const act = (sign: string, label: string, run: () => void, off = false): HTMLElement =>
    el(
      "button",
      { type: "button", class: "saem-chip-act", "aria-label": label, title: label, disabled: off,
        onclick: run },
      sign
    );
  const own = el("input", {
    class: "saem-search",
    "aria-label": locale.say("bench.own"),
    placeholder: "vmap(in_axes=(None, 0))",
    title: locale.say("bench.own"),
    onkeydown: (event: Event) => {
      event.stopPropagation();
      if ((event as KeyboardEvent).key === "Enter" && own.value.trim()) {
        choose?.([...chips, own.value.trim()]);
      }
    }
  });
  return el(
    "div",
    { class: "saem-chips saem-tools" },
    el("code", { class: "saem-chip saem-chip-function" }, model.title),
    chips.map((name, at) =>
      el(
        "span",
        { class: "saem-chip" },
        choose &&
          act("‹", locale.say("bench.earlier", { name }), () => move(at, at - 1), at === 0),
        el("code", {}, name),
        choose &&
          act(
            "›",
            locale.say("bench.later", { name }),
            () => move(at, at + 1),
            at === chips.length - 1
          ),
        choose &&
          act("×", locale.say("bench.remove", { name }), () =>
            choose(chips.filter((_, i) => i !== at))
          )
      )
    ),
    choose
      ? [
          model.offered.map(name => button(`+ ${name}`, () => choose([...chips, name]))),
          own
        ]
      : el("span", { class: "saem-dim" }, locale.say("bench.static"))
  );
}

function drawStage(
  stage: BenchStage,
  before: BenchStage | null,
  options: JaxprOptions
): HTMLElement {
  const { locale } = options;
  if (stage.jaxpr === null) {
    return pane(
      "",
      stage.label,
      el(
        "pre",
        { class: "saem-message saem-notice" },
        stage.error && prose(locale.pick(stage.error))
      )
    );
  }
  const jaxpr = stage.jaxpr;
  const whole = el("details", { class: "saem-program saem-pane" });
  whole.append(el("summary", {}, `${locale.say("jaxpr")} · ${stage.label}`));
  whole.addEventListener(
    "toggle",
    () => whole.append(new JaxprView(jaxpr, { ...options, bare: true }).element),
    { once: true }
  );
  return el(
    "div",
    { class: "saem-stage" },
    before?.jaxpr && diff(stage, before.jaxpr, before.label, locale),
    stage.saved.length > 0 && kept(stage.saved, stage.bytes, jaxpr, locale),
    whole
  );
}

/** Two programs side by side. */
function diff(
  stage: BenchStage,
  left: JaxprModel,
  label: string,
  locale: Locale
): HTMLElement {
  const was = new Map(left.body.equations.map(e => [e.id, e]));
  const now = new Map(stage.jaxpr!.body.equations.map(e => [e.id, e]));
  const cell = (equation: Equation | undefined, side: string, same: boolean): HTMLElement =>
    el(
      "td",
      { class: equation && !same ? `saem-diff-${side}` : "" },
      equation && [
        el(
          "span",
          { class: "saem-sr" },
          same ? "" : locale.say(side === "left" ? "bench.gone" : "bench.new")
        ),
        line(equation)
      ]
    );
  return el(
    "div",
    { class: "saem-scroll", tabindex: 0 },
    el(
      "table",
      { class: "saem-diff" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          [label, stage.label].map(text => el("th", { scope: "col" }, el("code", {}, text)))
        )
      ),
      el(
        "tbody",
        {},
        stage.rows.map(row =>
          el(
            "tr",
            {},
            cell(was.get(row.left ?? ""), "left", row.same),
            cell(now.get(row.right ?? ""), "right", row.same)
          )
        )
      )
    )
  );
}

/** An equation on one line. */
export function line(equation: Equation): HTMLElement {
  const tone = equation.colour === "backward" ? "saem-backward" : "";
  return el(
    "code",
    { class: `saem-eqn ${tone}` },
    equation.outputs.map((a, i) => [
      i > 0 && " ",
      a.text,
      el("span", { class: "saem-t-type" }, `:${a.type}`)
    ]),
    " = ",
    el("span", { class: "saem-t-primitive" }, equation.primitive),
    " ",
    equation.inputs.map(a => a.text).join(" ")
  );
}

function kept(
  saved: readonly Residual[],
  bytes: number,
  jaxpr: JaxprModel,
  locale: Locale
): HTMLElement {
  return el(
    "div",
    { class: "saem-kept" },
    el(
      "p",
      { class: "saem-key" },
      locale.say("autodiff.total", { bytes: locale.bytes(bytes) })
    ),
    el(
      "ul",
      {},
      saved.map(value => residual(value, jaxpr, locale, bytes))
    )
  );
}

function residual(
  value: Residual,
  jaxpr: JaxprModel,
  locale: Locale,
  total: number
): HTMLElement {
  const place = jaxpr.places[value.place ?? -1];
  return el(
    "li",
    {
      class: "saem-residual",
      ...OWN_KEYS,
      "data-var": value.variable,
      "data-eqn": [value.maker, ...value.readers].filter(Boolean).join(" ")
    },
    el("code", {}, value.name, el("span", { class: "saem-t-type" }, `:${value.type}`)),
    share(value.bytes / Math.max(total, 1)),
    el("span", {}, locale.bytes(value.bytes)),
    el(
      "span",
      { class: "saem-dim" },
      value.maker === null ? locale.say("autodiff.given") : place ? locale.pick(place.label) : ""
    )
  );
}

/** The list, of which Tab reaches one item, arrows the others; Enter or Space is a click. */
function withKeys(list: HTMLElement): HTMLElement {
  const items = [...list.children] as HTMLElement[];
  const reach = (item?: HTMLElement): void =>
    items.forEach(other => other.setAttribute("tabindex", other === item ? "0" : "-1"));
  reach(items[0]);
  list.addEventListener("focusin", event => reach(event.target as HTMLElement));
  list.addEventListener("keydown", event => {
    const item = event.target as HTMLElement;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      items[items.indexOf(item) + step]?.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      item.click();
    }
  });
  return list;
}

/** Forward on the left, what is kept in the middle, backward on the right; then the whole. */
export function drawAutodiff(model: AutodiffModel, options: JaxprOptions): HTMLElement {
  const { locale } = options;
  const { equations } = model.jaxpr.body;
  const column = (word: "forward" | "backward"): Child =>
    pane(
      `saem-pass saem-pass-${word}`,
      locale.say(`autodiff.${word}`),
      withKeys(
        el(
          "ol",
          { class: "saem-scroll saem-code" },
          equations
            .filter(e => e.colour === word)
            .map(e => el("li", { class: "saem-line", "data-eqn": e.id, ...OWN_KEYS }, line(e)))
        )
      )
    );
  const saved = kept(model.saved, model.bytes, model.jaxpr, locale);
  withKeys(saved.querySelector("ul")!);
  const view = new JaxprView(model.jaxpr, options);
  view.element.prepend(
    el(
      "div",
      { class: "saem-passes" },
      column("forward"),
      pane(
        "",
        locale.say("autodiff.kept"),
        model.saved.length > 0
          ? saved
          : el("p", { class: "saem-hint" }, locale.say("autodiff.none"))
      ),
      column("backward")
    )
  );
  return el(
    "section",
    {},
    el(
      "header",
      { class: "saem-bar" },
      el("span", { class: "saem-title" }, locale.say("autodiff.title"))
    ),
    view.element
  );
}
