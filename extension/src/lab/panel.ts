// What does the side panel show?
//
// The active notebook's functions, compiles, reasons and costs, live; what is running now; what to
// try next; or, in words, why there is nothing to show and what to do.
// Read before: connection.ts, ../renderer/history.ts. Read after: index.ts.
// Invariant: the page is drawn at most once a frame, however many records come (tests/browser).
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";
import { el, prose, type Child } from "../renderer/dom";
import { HistoryView } from "../renderer/history";
import type { Locale } from "../renderer/locale";
import { button } from "../renderer/parts";
import { VERSION, type HistoryModel, type Place, type Progress } from "../schema";
import type { State } from "./connection";

interface PanelActions {
  readonly visit: (place: Place) => void;
  readonly clear: () => void;
  readonly connect: () => void;
  readonly load: () => void;
  readonly insert: (code: string) => void;
}

const NEXT = [
  ["next.jaxpr", "%%lens jaxpr\n{call}"],
  ["next.tracers", "%%lens tracers\n{call}"],
  ["next.steps", "%%lens steps\n{call}"],
  ["next.autodiff", "%%lens autodiff\n{call}"],
  ["next.compiled", "%%lens compiled\n{call}"],
  ["next.keys", "%lens keys"],
  ["next.devices", "%lens devices"]
] as const;

export class LensPanel extends Widget {
  private state: State = { name: "none" };
  private notebook = "";
  private inserts = false;
  private progress: Progress | null = null;
  private view: HistoryView | null = null;
  private frame = 0;
  private quiet = false;
  private clock = 0;
  private readonly working = el("div", { class: "saem-working", role: "status" });

  constructor(
    private locale: Locale,
    private readonly actions: PanelActions
  ) {
    super();
    this.id = "saem-lens-panel";
    this.addClass("saem-panel");
    this.draw();
  }

  /** Show a state of the connection to a kernel; can cells be put into `notebook`? */
  display(state: State, notebook: string, inserts: boolean): void {
    this.state = state;
    this.notebook = notebook;
    this.inserts = inserts;
    this.soon();
  }

  /** Show what has been running for a while. */
  work(progress: Progress | null): void {
    this.progress = progress;
    clearInterval(this.clock);
    if (progress) {
      this.clock = Number(setInterval(() => this.drawWork(), 500));
    }
    this.drawWork();
  }

  /** Speak another language. */
  speak(locale: Locale): void {
    this.locale = locale;
    this.view = null;
    this.soon();
  }

  /** Bring a function's row into sight. */
  reveal(key: string): void {
    this.draw();
    this.view?.reveal(key);
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.draw();
  }

  /** The panel is about to open by itself: whoever runs cells goes on in the notebook. */
  leaveFocus(): void {
    this.quiet = true;
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    if (this.quiet) {
      this.quiet = false;
      return;
    }
    if (this.node.contains(document.activeElement)) {
      return; // a badge was pressed: what it revealed keeps the focus, and so its place in sight
    }
    const first = this.node.querySelector<HTMLElement>("button[tabindex='0'], button");
    (first ?? this.node).focus();
  }

  override dispose(): void {
    cancelAnimationFrame(this.frame);
    clearInterval(this.clock);
    super.dispose();
  }

  private soon(): void {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    }
  }

  private draw(): void {
    if (this.isDisposed) {
      return;
    }
    const { state, locale } = this;
    if (state.name !== "live") {
      this.view = null;
      this.replace(this.head(), this.message());
      return;
    }
    const options = { locale, visit: this.actions.visit, narrow: true };
    if (this.view) {
      this.view.update(state.history, options);
      this.node.querySelector(".saem-panel-head")?.replaceWith(this.head());
      this.node.querySelector(".saem-next")?.replaceWith(this.next(state.history));
      this.hideEmpty(state.history);
      return;
    }
    this.view = new HistoryView(state.history, options);
    const waiting = el(
      "p",
      { class: "saem-waiting saem-hint" },
      prose(locale.say("panel.waiting"))
    );
    this.replace(this.head(), this.working, waiting, this.view.element, this.next(state.history));
    this.hideEmpty(state.history);
    this.drawWork();
  }

  private hideEmpty(history: HistoryModel): void {
    const empty = history.functions.length === 0;
    this.view!.element.hidden = empty;
    this.node.querySelector<HTMLElement>(".saem-waiting")!.hidden = !empty;
  }

  private drawWork(): void {
    const { progress, locale } = this;
    if (!progress || progress.activity === "idle") {
      this.working.replaceChildren();
      return;
    }
    const since = Math.max(0, Date.now() / 1000 - progress.began);
    this.working.replaceChildren(
      el("span", { class: "saem-spinner", "aria-hidden": "true" }),
      el(
        "span",
        {},
        prose(locale.say(`progress.${progress.activity}`, { name: progress.function })),
        el("b", {}, ` ${Math.round(since)} s`)
      ),
      ...(progress.why ? [el("p", { class: "saem-dim" }, prose(locale.pick(progress.why)))] : [])
    );
  }

  /** What to try next: each puts a cell into the notebook. */
  private next(history: HistoryModel): HTMLElement {
    const { locale } = this;
    const name = history.functions.at(-1)?.summary.name;
    const call = name && /^[A-Za-z_]\w*$/.test(name) ? `${name}(…)` : "f(x)";
    return el(
      "section",
      { class: "saem-next" },
      this.inserts && [
        el("h4", { class: "saem-heading" }, locale.say("panel.next")),
        el(
          "ul",
          {},
          NEXT.map(([word, code]) =>
            el(
              "li",
              {},
              el(
                "button",
                {
                  type: "button",
                  class: "saem-next-item",
                  title: locale.say("panel.insert"),
                  onclick: () => this.actions.insert(code.replace("{call}", call))
                },
                el("code", {}, code.split("\n")[0]!),
                el("span", {}, locale.say(word))
              )
            )
          )
        )
      ]
    );
  }

  private replace(...children: HTMLElement[]): void {
    const { language } = this.locale;
    const root = el("div", { class: "saem", lang: language, "data-state": this.state.name });
    root.append(...children);
    this.node.replaceChildren(root);
  }

  private head(): HTMLElement {
    const { state, locale, notebook, actions } = this;
    return el(
      "header",
      { class: "saem-panel-head" },
      el(
        "div",
        { class: "saem-panel-title" },
        el("span", { class: `saem-dot saem-dot-${state.name}`, "aria-hidden": "true" }),
        el("h3", {}, locale.say("panel.title")),
        state.name === "live" &&
          state.history.functions.length > 0 &&
          button(locale.say("panel.clear.short"), actions.clear, {
            class: "saem-button saem-clear",
            title: locale.say("panel.clear")
          })
      ),
      notebook && el("p", { class: "saem-panel-notebook" }, notebook),
      state.name === "live" && this.totals()
    );
  }

  private totals(): Child {
    const { state, locale } = this;
    if (state.name !== "live") {
      return null;
    }
    const { compiles, seconds } = total(state.history);
    const devices = state.environment?.devices.map(d => d.platform) ?? [];
    const ran = state.environment && [
      ` · jaxlib ${state.environment.jaxlib}`,
      ...[...new Set(devices)].map(platform => ` · ${platform}`)
    ];
    return el(
      "p",
      { class: "saem-panel-total" },
      locale.say("panel.total", {
        compiles: locale.count(compiles),
        seconds: locale.seconds(seconds)
      }),
      ran
    );
  }

  private message(): HTMLElement {
    const { state, locale, actions } = this;
    const text =
      state.name === "version" && state.message
        ? locale.pick(state.message)
        : state.name === "version"
          ? locale.say("panel.version", { got: state.got, have: VERSION })
          : state.name === "notInstalled"
            ? locale.say("panel.notInstalled", { why: state.why })
            : state.name === "live"
              ? ""
              : locale.say(`panel.${state.name}`);
    return el(
      "div",
      { class: "saem-panel-message", role: "status" },
      el("p", {}, prose(text)),
      (state.name === "absent" || state.name === "notInstalled") &&
        button(locale.say("panel.load"), actions.load),
      state.name === "version" &&
        button(locale.say("panel.connect.short"), actions.connect)
    );
  }
}

/** Compiles and seconds of all functions. */
export function total(history: HistoryModel): { compiles: number; seconds: number } {
  const rows = history.functions.map(f => f.summary);
  return {
    compiles: rows.reduce((n, row) => n + row.compiles, 0),
    seconds: rows.reduce((n, row) => n + row.seconds, 0)
  };
}
