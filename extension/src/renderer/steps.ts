// What numbers flow through a jaxpr?
//
// A slider walks along the equations; beside the jaxpr stand the values of the chosen one as small
// heatmaps with statistics. Equations that make a first NaN or infinity are marked.
// Read before: jaxpr.ts. Read after: view.ts.
// Invariant: step n shows the result of equation n (test/views.test.ts).
import type { Picture, StepsModel } from "../schema";
import { el, OWN_KEYS, svg, type Child } from "./dom";
import { JaxprView, type JaxprOptions } from "./jaxpr";
import type { Locale } from "./locale";
import { button, fact, facts, signButton } from "./parts";

const PAUSE = 700;

export class StepsView {
  readonly element: HTMLElement;
  private readonly view: JaxprView;
  private readonly values = el("div", { class: "saem-pictures", "aria-live": "polite" });
  private readonly at = el("output", { class: "saem-dim" });
  private readonly slider: HTMLInputElement;
  private readonly play: HTMLElement;
  private step = 0;
  private timer = 0;

  constructor(
    private readonly model: StepsModel,
    private readonly options: JaxprOptions
  ) {
    const { locale } = options;
    this.view = new JaxprView(model.jaxpr, options);
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: model.steps.length,
      value: 0,
      class: "saem-slider",
      ...OWN_KEYS,
      "aria-label": locale.say("steps.title"),
      oninput: () => this.go(Number(this.slider.value))
    });
    this.play = button(locale.say("steps.play"), () => this.run());
    const [born] = model.born;
    this.element = el(
      "section",
      {},
      el(
        "div",
        { class: "saem-bar saem-stepper saem-tools" },
        signButton("◂", locale.say("steps.back"), () => this.go(this.step - 1)),
        this.slider,
        signButton("▸", locale.say("steps.next"), () => this.go(this.step + 1)),
        this.play,
        this.at,
        born === undefined
          ? el("span", { class: "saem-dim" }, locale.say("steps.none"))
          : button(`⚠ ${locale.say("steps.go")}`, () => this.go(this.stepOf(born)), {
              class: "saem-button saem-born"
            })
      ),
      this.values,
      this.view.element
    );
    this.go(0);
  }

  private stepOf(equation: string): number {
    const at = this.model.steps.findIndex(
      s => s.equation === equation || equation.startsWith(`${s.equation}.`)
    );
    return at + 1;
  }

  private run(): void {
    const { locale } = this.options;
    if (this.timer) {
      clearInterval(this.timer);
      this.timer = 0;
      this.play.textContent = locale.say("steps.play");
      return;
    }
    if (this.step >= this.model.steps.length) {
      this.go(0);
    }
    this.play.textContent = locale.say("steps.stop");
    this.timer = Number(
      setInterval(() => {
        if (this.step >= this.model.steps.length || !this.element.isConnected) {
          this.run();
        } else {
          this.go(this.step + 1);
        }
      }, PAUSE)
    );
  }

  /** Show the inputs (0) or the result of equation `step` (1, 2, …). */
  go(step: number): void {
    const { locale } = this.options;
    const { steps, inputs, born } = this.model;
    this.step = Math.max(0, Math.min(step, steps.length));
    this.slider.value = String(this.step);
    const now = steps[this.step - 1];
    this.at.textContent = now
      ? locale.say("steps.at", { n: this.step, all: steps.length })
      : locale.say("steps.start");
    const ill = now && born.some(b => b === now.equation || b.startsWith(`${now.equation}.`));
    this.values.replaceChildren(
      ...(now ? now.outputs : inputs).map(p => picture(p, locale)),
      ...(ill
        ? [el("p", { class: "saem-notice saem-born-note" }, `⚠ ${locale.say("steps.born")}`)]
        : [])
    );
    if (now) {
      this.view.choose(now.equation);
    }
  }
}

/** A value as a heatmap with its statistics. */
export function picture(value: Picture, locale: Locale): HTMLElement {
  const stat = (word: "minimum" | "maximum" | "mean" | "deviation"): Child => {
    const number = value[word];
    return number !== null && fact(locale.say(`stat.${word}`), brief(number));
  };
  const ill = [
    ["NaN", value.nans],
    ["Inf", value.infs]
  ] as const;
  return el(
    "figure",
    { class: "saem-picture", "data-var": value.variable },
    el(
      "figcaption",
      {},
      el("b", {}, value.name),
      el("code", { class: "saem-t-type" }, `:${value.type}`)
    ),
    value.size > 1 && value.grid.length > 0 && heatmap(value),
    el("code", { class: "saem-numbers" }, value.text),
    value.size > 1 &&
      facts(stat("minimum"), stat("maximum"), stat("mean"), stat("deviation")),
    ill
      .filter(([, count]) => count > 0)
      .map(([name, count]) => el("span", { class: "saem-ill" }, `${name} × ${locale.count(count)}`))
  );
}

function brief(number: number): string {
  return Number(number.toPrecision(4)).toString();
}

/** A grid of numbers in two colours from one centre: below zero, and above. */
function heatmap(value: Picture): SVGSVGElement {
  const { grid, minimum, maximum } = value;
  const most = Math.max(Math.abs(minimum ?? 0), Math.abs(maximum ?? 0)) || 1;
  const columns = Math.max(...grid.map(row => row.length));
  const side = Math.max(5, Math.min(16, Math.floor(260 / columns)));
  return svg(
    "svg",
    {
      class: "saem-heatmap",
      width: columns * side,
      height: grid.length * side,
      role: "img",
      "aria-label": value.text
    },
    grid.flatMap((row, y) =>
      row.map((number, x) => {
        const tone = number === null ? "ill" : number < 0 ? "below" : "above";
        const strength = number === null ? 1 : 0.06 + (0.94 * Math.abs(number)) / most;
        return svg(
          "rect",
          {
            x: x * side,
            y: y * side,
            width: side - 0.5,
            height: side - 0.5,
            class: `saem-cell-${tone}`,
            style: `fill-opacity:${strength}`
          },
          svg("title", {}, number === null ? "NaN" : String(number))
        );
      })
    )
  );
}
