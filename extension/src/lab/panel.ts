// What does the side panel show?
//
// The active notebook's functions, compiles, reasons and costs, live; or, in words, why there is
// nothing to show and what to do.
// Read before: connection.ts, ../renderer/history.ts. Read after: index.ts.
// Invariant: the page is drawn at most once a frame, however many records come (tests/browser).
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";
import { el, prose, type Child } from "../renderer/dom";
import { HistoryView } from "../renderer/history";
import { VERSION, type Place } from "../schema";
import type { State } from "./connection";
import type { Locale } from "../renderer/locale";

export interface PanelActions {
  readonly visit: (place: Place) => void;
  readonly clear: () => void;
  readonly connect: () => void;
  readonly load: () => void;
}

export class LensPanel extends Widget {
  private state: State = { name: "none" };
  private notebook = "";
  private view: HistoryView | null = null;
  private frame = 0;

  constructor(
    private locale: Locale,
    private readonly actions: PanelActions
  ) {
    super();
    this.id = "saem-lens-panel";
    this.addClass("saem-panel");
    this.draw();
  }

  /** Show a state of the connection to the kernel of `notebook`. */
  display(state: State, notebook: string): void {
    this.state = state;
    this.notebook = notebook;
    this.soon();
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

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    const first = this.node.querySelector<HTMLElement>("button[tabindex='0'], button");
    (first ?? this.node).focus();
  }

  override dispose(): void {
    cancelAnimationFrame(this.frame);
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
      const empty = state.history.functions.length === 0;
      this.view.element.hidden = empty;
      this.node.querySelector<HTMLElement>(".saem-waiting")!.hidden = !empty;
      return;
    }
    this.view = new HistoryView(state.history, options);
    const empty = state.history.functions.length === 0;
    this.view.element.hidden = empty;
    const words = prose(locale.say("panel.waiting"));
    const waiting = el("p", { class: "saem-waiting saem-hint" }, words);
    waiting.hidden = !empty;
    this.replace(this.head(), waiting, this.view.element);
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
          el(
            "button",
            {
              type: "button",
              class: "saem-button saem-clear",
              title: locale.say("panel.clear"),
              onclick: actions.clear
            },
            locale.say("panel.clear.short")
          )
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
    const rows = state.history.functions.map(f => f.summary);
    const compiles = rows.reduce((n, row) => n + row.compiles, 0);
    const seconds = rows.reduce((n, row) => n + row.seconds, 0);
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
    const button = (word: "load" | "connect.short", act: () => void): HTMLElement =>
      el(
        "button",
        { type: "button", class: "saem-button", onclick: act },
        locale.say(`panel.${word}`)
      );
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
      (state.name === "absent" || state.name === "notInstalled") && button("load", actions.load),
      state.name === "version" && button("connect.short", actions.connect)
    );
  }
}
