// What did the engine make of this function?
//
// The learner's source, the jaxpr as text or in columns, the graph, the StableHLO text and XLA's
// kernels side by side. Pointing at one lights the same equation in all; nested jaxprs fold in
// text and graph together; a search finds lines.
// Read before: link.ts, rows.ts, graph.ts, draw.ts. Read after: view.ts.
// Invariant: folding hides lines and never changes them (test/jaxpr.test.ts).
import type { Equation, JaxprModel, Line, Place, SourceBlock, Token } from "../schema";
import { around } from "./around";
import { card } from "./card";
import type { Visit } from "./detail";
import { drawGraph } from "./draw";
import { el, OWN_KEYS, type Child } from "./dom";
import { graphOf } from "./graph";
import { kernelList } from "./kernels";
import type { LayoutEngine } from "./layout";
import { Linker } from "./link";
import type { Locale } from "./locale";
import { covers, equations, folds, within } from "./model";
import { button, pane } from "./parts";
import { Rows } from "./rows";
import { Zoom } from "./zoom";

export interface JaxprOptions {
  readonly locale: Locale;
  readonly visit?: Visit;
  /** The engine that lays the graph out, at once or once it is loaded. */
  readonly engine: LayoutEngine | Promise<LayoutEngine>;
  /** Leave out what a view around this one shows itself. */
  readonly bare?: boolean;
}

/** Equations beyond this number start folded, so that the first look is at the whole. */
const OPEN_EQUATIONS = 40;
/** Of a larger program the graph shows the part around the chosen equation. */
const DRAWN_EQUATIONS = 150;
const LINE = 20;
const TONES = 6;

type Mode = "text" | "columns";

/** A jaxpr explorer. */
export class JaxprView {
  readonly element: HTMLElement;
  private readonly folded = new Set<string>();
  private readonly all: Equation[];
  private readonly byId: Map<string, Equation>;
  private readonly depth = new Map<string, number>();
  private readonly ranges: Map<string, { first: number; last: number; count: number }>;
  private readonly headAt: Map<number, string>;
  private readonly stacks: string[];
  private readonly card = el("div", { class: "saem-card", "aria-live": "polite" });
  private readonly graph: Zoom;
  private readonly lines: Rows;
  private readonly linker: Linker;
  private readonly found = el("output", { class: "saem-found" });
  private mode: Mode = "text";
  private byStack = false;
  private shown: number[] = [];
  private query = "";
  private hits: number[] = [];
  private hit = -1;
  private centre: string | null = null;
  private timer = 0;
  private tallest = 0;

  constructor(
    private readonly model: JaxprModel,
    private readonly options: JaxprOptions
  ) {
    const { locale } = options;
    this.all = equations(model.body);
    this.byId = new Map(this.all.map(e => [e.id, e]));
    for (const { id } of this.all) {
      this.depth.set(id, (id.match(/\./g)?.length ?? 0) / 2);
    }
    const ranges = folds(model.lines, model.body);
    this.ranges = new Map(ranges.map(r => [r.equation.id, r]));
    this.headAt = new Map(ranges.map(r => [r.first, r.equation.id]));
    this.stacks = [...new Set(this.all.map(e => e.stack.join(" ▸ ")))];
    this.graph = new Zoom(locale);
    this.lines = new Rows(LINE, at => this.drawRow(at), () => this.linker?.refresh(), {
      role: "tree",
      tabindex: "-1",
      ...OWN_KEYS,
      "aria-label": locale.say("jaxpr"),
      class: "saem-code saem-fixed"
    });
    if (this.all.length > OPEN_EQUATIONS) {
      this.all.filter(e => e.nested.length > 0).forEach(e => this.folded.add(e.id));
    }
    this.element = el(
      "section",
      { class: "saem-jaxpr" },
      this.header(),
      el(
        "div",
        { class: "saem-panes" },
        el(
          "div",
          { class: "saem-column" },
          this.sources(true).map(block =>
            pane("saem-pane-source", this.sourceTitle(block), this.sourceCode(block))
          ),
          this.textPane(),
          this.sources(false).map(block =>
            el(
              "details",
              { class: "saem-program saem-pane saem-pane-source" },
              el("summary", {}, this.sourceTitle(block)),
              this.sourceCode(block)
            )
          )
        ),
        el(
          "div",
          { class: "saem-column" },
          pane("saem-pane-graph", locale.say("graph"), this.graph.element)
        )
      ),
      this.card,
      this.programPane(),
      model.kernels && model.kernels.length > 0 && this.kernelPane()
    );
    this.linker = new Linker(
      this.element,
      id => this.tell(id),
      id => this.bring(id)
    );
    this.element.addEventListener("click", event => this.onClick(event));
    this.element.addEventListener("keydown", event => this.onKey(event));
    this.drawLines();
    this.drawGraphSoon();
    this.tell(null);
  }

  private header(): HTMLElement {
    const { locale } = this.options;
    const backward = this.all.some(e => e.colour === "backward");
    const nested = this.all.some(e => e.nested.length > 0);
    const tone = (name: "forward" | "backward"): HTMLElement =>
      el("li", { class: `saem-tone saem-${name}` }, locale.say(name));
    const stackTone = (stack: string, at: number): HTMLElement =>
      el("li", { class: `saem-tone saem-stack-${at % TONES}` }, stack || locale.say("colour.none"));
    const legend = el("ul", { class: "saem-legend", "aria-label": locale.say("legend") });
    const fill = (): void =>
      legend.replaceChildren(
        ...(this.byStack
          ? this.stacks.map(stackTone)
          : backward
            ? [tone("forward"), tone("backward")]
            : [])
      );
    fill();
    const toggle = (): void => {
      this.byStack = !this.byStack;
      colours.setAttribute("aria-pressed", String(this.byStack));
      this.element.classList.toggle("saem-by-stack", this.byStack);
      fill();
      this.drawLines();
    };
    const colours = button(locale.say("colour.stack"), toggle, { "aria-pressed": "false" });
    return el(
      "header",
      { class: "saem-bar" },
      el("code", { class: "saem-title" }, this.model.title),
      legend,
      el(
        "span",
        { class: "saem-tools" },
        this.search(),
        this.stacks.length > 1 && colours,
        nested && button(locale.say("fold.all"), () => this.foldAll(true)),
        nested && button(locale.say("unfold.all"), () => this.foldAll(false))
      )
    );
  }

  private search(): HTMLElement {
    const { locale } = this.options;
    const box = el("input", {
      type: "search",
      class: "saem-search",
      placeholder: locale.say("search"),
      "aria-label": locale.say("search"),
      oninput: () => this.find(box.value),
      onkeydown: (event: Event) => {
        const { key, shiftKey } = event as KeyboardEvent;
        if (key === "Enter") {
          event.preventDefault();
          this.goTo(this.hit + (shiftKey ? -1 : 1));
        }
        event.stopPropagation();
      }
    });
    return el("span", { role: "search" }, box, this.found);
  }

  /** The sources before the text, or those behind it: of libraries, where there are cells. */
  private sources(before: boolean): readonly SourceBlock[] {
    const { sources, places } = this.model;
    if (this.options.bare) {
      return [];
    }
    const cells = new Set(places.filter(p => p.cell !== null).map(p => p.file));
    const some = sources.some(block => cells.has(block.file));
    return sources.filter(block => (!some || cells.has(block.file)) === before);
  }

  private sourceTitle(block: SourceBlock): string {
    const { locale } = this.options;
    return `${locale.say("source")} · ${locale.pick(block.label)}`;
  }

  private sourceCode(block: SourceBlock): HTMLElement {
    const lines = sourceLines(block, this.all, this.model.places);
    return el("div", { class: "saem-scroll saem-code" }, lines);
  }

  private textPane(): HTMLElement {
    const { locale } = this.options;
    const tabs = (["text", "columns"] as const).map(mode =>
      el(
        "button",
        {
          type: "button",
          class: "saem-tab",
          "data-mode": mode,
          "aria-pressed": String(mode === this.mode),
          onclick: () => {
            this.mode = mode;
            tabs.forEach(t => t.setAttribute("aria-pressed", String(t.dataset.mode === mode)));
            this.drawLines();
            this.find(this.query);
          }
        },
        locale.say(mode)
      )
    );
    return pane(
      "saem-pane-text",
      locale.say("jaxpr"),
      this.lines.element,
      el("span", { class: "saem-tools" }, tabs)
    );
  }

  private programPane(): Child {
    const { program } = this.model;
    if (!program || program.length === 0) {
      return null;
    }
    const rows = new Rows(
      LINE,
      at => {
        const line = program[at]!;
        return el(
          "div",
          { class: "saem-line", "data-eqn": line.equations.join(" ") || null },
          el("span", { class: "saem-number", "aria-hidden": "true" }, String(at + 1)),
          el("span", { class: "saem-text" }, line.text)
        );
      },
      () => this.linker?.refresh(),
      { class: "saem-code saem-fixed", tabindex: "0" }
    );
    this.programRows = rows;
    const details = el(
      "details",
      { class: "saem-program saem-pane" },
      el("summary", {}, this.options.locale.say("program")),
      rows.element
    );
    details.addEventListener("toggle", () => details.open && rows.set(program.length));
    return details;
  }

  private programRows: Rows | null = null;

  private kernelPane(): HTMLElement {
    const { locale } = this.options;
    return el(
      "details",
      { class: "saem-program saem-pane" },
      el("summary", {}, locale.say("compiled.kernels")),
      kernelList(this.model.kernels ?? [], locale)
    );
  }

  // ---- lines ----

  private drawLines(): void {
    this.shown = [];
    if (this.mode === "columns") {
      this.all.forEach((e, at) => !this.hides(e.id) && this.shown.push(at));
    } else {
      const hidden = this.hiddenLines();
      this.model.lines.forEach((_, at) => !hidden.has(at) && this.shown.push(at));
    }
    this.lines.element.classList.toggle("saem-columns", this.mode === "columns");
    this.lines.set(this.shown.length);
  }

  /** Is an equation inside a folded one? */
  private hides(id: string): boolean {
    for (let at = id.lastIndexOf("."); at > 0; at = id.lastIndexOf(".", at - 1)) {
      if (this.folded.has(id.slice(0, at))) {
        return true;
      }
    }
    return false;
  }

  private hiddenLines(): Set<number> {
    const hidden = new Set<number>();
    for (const id of this.folded) {
      const range = this.ranges.get(id);
      for (let at = (range?.first ?? 0) + 1; range && at <= range.last; at += 1) {
        hidden.add(at);
      }
    }
    return hidden;
  }

  private drawRow(row: number): HTMLElement {
    const at = this.shown[row] ?? 0;
    const node = this.mode === "columns" ? this.drawColumns(at) : this.drawLine(at);
    if (this.hits.includes(row)) {
      node.classList.add(this.hits[this.hit] === row ? "saem-hit-now" : "saem-hit");
    }
    return node;
  }

  private classOf(equation: Equation | undefined): string {
    const tone = equation?.colour === "backward" ? " saem-backward" : "";
    const stack = this.byStack && equation ? this.stacks.indexOf(equation.stack.join(" ▸ ")) : -1;
    return `saem-line${tone}${stack >= 0 ? ` saem-stack-${stack % TONES}` : ""}`;
  }

  private foldMark(id: string | undefined, folded: boolean): HTMLElement {
    return id
      ? el(
          "span",
          {
            class: "saem-fold",
            "data-fold": id,
            title: this.options.locale.say(folded ? "unfold" : "fold"),
            "aria-hidden": "true"
          },
          folded ? "▸" : "▾"
        )
      : el("span", { class: "saem-fold", "aria-hidden": "true" });
  }

  private drawLine(at: number): HTMLElement {
    const { locale } = this.options;
    const line: Line = this.model.lines[at]!;
    const head = this.headAt.get(at);
    const folded = head !== undefined && this.folded.has(head);
    const equation = this.byId.get(line.equation ?? "");
    return el(
      "div",
      {
        class: this.classOf(equation),
        role: "treeitem",
        "aria-expanded": head ? String(!folded) : null,
        "data-eqn": line.equation === null ? null : this.idsOf(line.equation, folded),
        "data-head": head,
        tabindex: line.equation === null ? null : -1,
        ...OWN_KEYS
      },
      this.foldMark(head, folded),
      el("span", { class: "saem-text" }, " ".repeat(line.indent), line.tokens.map(drawToken)),
      folded &&
        el(
          "span",
          { class: "saem-folded", "data-fold": head },
          locale.say("fold.count", { n: this.ranges.get(head)?.count ?? 0 })
        )
    );
  }

  private drawColumns(at: number): HTMLElement {
    const { locale } = this.options;
    const equation = this.all[at]!;
    const { id, outputs, inputs, primitive, parameters } = equation;
    const folds = equation.nested.length > 0;
    const folded = folds && this.folded.has(id);
    const cell = (name: string, ...children: Child[]): HTMLElement =>
      el("span", { class: `saem-col saem-col-${name}` }, ...children);
    const params = parameters.map(p => `${p.name}=${p.value}`).join(" ");
    return el(
      "div",
      {
        class: this.classOf(equation),
        role: "treeitem",
        "aria-expanded": folds ? String(!folded) : null,
        "aria-level": (this.depth.get(id) ?? 0) + 1,
        "data-eqn": this.idsOf(id, folded),
        "data-head": folds ? id : null,
        tabindex: -1,
        ...OWN_KEYS
      },
      this.foldMark(folds ? id : undefined, folded),
      cell(
        "variable",
        outputs.map((a, i) => [
          i > 0 && " ",
          el("span", { class: "saem-t-variable", "data-var": a.id }, a.text)
        ])
      ),
      cell("type", outputs.map(a => a.type).join(" ")),
      cell(
        "equation",
        " ".repeat(2 * (this.depth.get(id) ?? 0)),
        el("span", { class: "saem-t-primitive" }, primitive),
        " ",
        inputs.map((a, i) => [
          i > 0 && " ",
          el(
            "span",
            { class: a.id === null ? "saem-t-literal" : "saem-t-variable", "data-var": a.id },
            a.text
          )
        ]),
        params && el("span", { class: "saem-t-parameter", title: params }, `  [${params}]`)
      ),
      cell("bytes", equation.bytes > 0 && locale.bytes(equation.bytes))
    );
  }

  /** A folded line lights up with the equations that it hides. */
  private idsOf(id: string, folded: boolean): string {
    return folded
      ? this.all
          .filter(e => within(e.id, id))
          .map(e => e.id)
          .join(" ")
      : id;
  }

  /** The row of an equation, or of the fold that hides it; -1 if there is none. */
  private rowOf(id: string): number {
    return this.shown.findIndex(at => {
      const own = this.mode === "columns" ? this.all[at]!.id : this.model.lines[at]!.equation;
      return own !== null && (own === id || (this.folded.has(own) && within(id, own)));
    });
  }

  private bring(id: string): void {
    const row = this.rowOf(id);
    if (row >= 0) {
      this.lines.show(row);
    }
    const line = this.model.program?.findIndex(l => l.equations.includes(id)) ?? -1;
    if (line >= 0 && this.programRows?.element.isConnected) {
      this.programRows.show(line);
    }
    if (this.model.body.equations.length > DRAWN_EQUATIONS && this.centre !== id) {
      this.centre = id;
      this.drawGraphSoon();
    }
  }

  // ---- search ----

  private find(query: string): void {
    this.query = query.trim().toLowerCase();
    const text = (at: number): string => {
      if (this.mode === "columns") {
        const e = this.all[at]!;
        const atoms = [...e.outputs, ...e.inputs].map(a => `${a.text}:${a.type}`);
        return [e.primitive, ...atoms, ...e.parameters.map(p => p.value)].join(" ");
      }
      return this.model.lines[at]!.tokens.map(t => t.text).join("");
    };
    this.hits = this.query
      ? [...this.shown.keys()].filter(row =>
          text(this.shown[row]!).toLowerCase().includes(this.query)
        )
      : [];
    this.hit = -1;
    this.goTo(0);
  }

  private goTo(hit: number): void {
    const { locale } = this.options;
    const count = this.hits.length;
    this.found.textContent = this.query ? locale.say("search.found", { n: count }) : "";
    if (count > 0) {
      this.hit = (hit + count) % count;
      this.lines.set(this.shown.length);
      this.lines.show(this.hits[this.hit]!);
    } else {
      this.lines.set(this.shown.length);
    }
  }

  // ---- graph ----

  private drawGraphSoon(): void {
    const { engine } = this.options;
    if (this.all.length <= OPEN_EQUATIONS && !(engine instanceof Promise)) {
      this.drawGraph(engine);
      return;
    }
    // The lines are painted first.
    this.graph.say(this.options.locale.say("layingOut"));
    clearTimeout(this.timer);
    this.timer = Number(
      setTimeout(() => {
        Promise.resolve(engine).then(
          ready => this.drawGraph(ready),
          error => this.graph.say(this.options.locale.say("noLayout", { why: String(error) }))
        );
      }, 30)
    );
  }

  private drawGraph(engine: LayoutEngine): void {
    const { locale } = this.options;
    try {
      const part = around(this.model.body, this.centre, DRAWN_EQUATIONS / 2);
      const whole = this.model.body.equations.length <= DRAWN_EQUATIONS;
      const graph = graphOf(whole ? this.model.body : part, this.folded);
      this.graph.show(drawGraph(graph, engine, locale));
      this.graph.note(
        whole
          ? ""
          : locale.say("graph.part", {
              n: part.equations.length,
              all: this.model.body.equations.length
            })
      );
      this.linker?.refresh();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.graph.say(locale.say("noLayout", { why }));
    }
  }

  // ---- folding, keys ----

  private setFold(id: string, folded: boolean): void {
    if (folded) {
      this.folded.add(id);
    } else {
      this.folded.delete(id);
    }
    this.redraw();
  }

  private foldAll(folded: boolean): void {
    this.folded.clear();
    if (folded) {
      this.all.filter(e => e.nested.length > 0).forEach(e => this.folded.add(e.id));
    }
    this.redraw();
  }

  private redraw(): void {
    this.drawLines();
    if (this.query) {
      this.find(this.query); // the rows that were found are others now
    }
    this.drawGraphSoon();
    this.linker.refresh();
  }

  private onClick(event: Event): void {
    const id = (event.target as Element).closest("[data-fold]")?.getAttribute("data-fold");
    if (id) {
      this.setFold(id, !this.folded.has(id));
      this.focusHead(id);
    }
  }

  private focusHead(id: string): void {
    this.lines.element.querySelector<HTMLElement>(`[data-head="${CSS.escape(id)}"]`)?.focus();
  }

  private onKey(event: KeyboardEvent): void {
    const target = event.target as Element;
    const node = target.closest("g.saem-node");
    if (node) {
      this.onNodeKey(event, node);
      return;
    }
    if (!this.lines.element.contains(target)) {
      return;
    }
    const line = target.closest<HTMLElement>(".saem-line[tabindex]");
    const head = line?.dataset.head;
    if (head && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      event.preventDefault();
      this.setFold(head, event.key === "ArrowLeft");
      this.focusHead(head);
      return;
    }
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      line?.click();
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      let next = this.lines.current + step;
      while (next in this.shown && !this.isEquation(next)) {
        next += step;
      }
      if (next in this.shown) {
        this.lines.focus(next);
      }
    }
  }

  private isEquation(row: number): boolean {
    return this.mode === "columns" || this.model.lines[this.shown[row]!]!.equation !== null;
  }

  private onNodeKey(event: KeyboardEvent, node: Element): void {
    const fold = node.getAttribute("data-fold-node");
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    } else if (fold && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      event.preventDefault();
      this.setFold(fold, event.key === "ArrowLeft");
      const name = CSS.escape(fold);
      this.graph.element.querySelector<SVGElement>(`[data-fold-node="${name}"]`)?.focus();
    }
  }

  /** Describe one equation under the panes. */
  private tell(id: string | null): void {
    const { locale, visit } = this.options;
    const equation = this.byId.get(id ?? "");
    if (equation) {
      this.card.replaceChildren(card(equation, this.model, locale, visit));
    } else {
      this.card.replaceChildren(el("p", { class: "saem-hint" }, locale.say("pick")));
    }
    // It never shrinks: what stands below would move away under the pointer that points at it.
    if (this.card.offsetHeight > this.tallest) {
      this.tallest = this.card.offsetHeight;
      this.card.style.minHeight = `${this.tallest}px`;
    }
  }

  /** Keep an equation lit and in sight, as a click on it would. */
  choose(id: string): void {
    this.linker.keepEquation(id);
    this.bring(id);
  }
}

function drawToken(token: Token): Child {
  return token.kind === "plain" && token.id === null
    ? token.text
    : el("span", { class: `saem-t-${token.kind}`, "data-var": token.id }, token.text);
}

function sourceLines(
  block: SourceBlock,
  all: readonly Equation[],
  places: readonly Place[]
): HTMLElement[] {
  return block.lines.map((text, i) => {
    const number = block.first_line + i;
    const here = all.filter(e => covers(places[e.place ?? -1], block.file, number));
    return el(
      "div",
      {
        class: "saem-line",
        "data-eqn": here.map(e => e.id).join(" ") || null,
        tabindex: here.length > 0 ? 0 : null
      },
      el("span", { class: "saem-number", "aria-hidden": "true" }, String(number)),
      el("span", { class: "saem-text" }, text)
    );
  });
}
