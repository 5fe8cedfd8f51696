// What did the engine make of this function?
//
// The learner's source, the printed jaxpr, the graph and the StableHLO text side by side. Pointing
// at one lights the same equation in all; nested jaxprs fold in text and graph together.
// Read before: link.ts, graph.ts, draw.ts. Read after: view.ts.
// Invariant: folding hides lines and never changes them (test/jaxpr.test.ts).
import type { Equation, JaxprModel, Line, Place, SourceBlock, Token } from "../schema";
import { drawGraph } from "./draw";
import { placeLabel, type Visit } from "./detail";
import { el, type Child } from "./dom";
import { graphOf } from "./graph";
import type { LayoutEngine } from "./layout";
import { Linker } from "./link";
import type { Locale } from "./locale";
import { covers, equations, folds, within } from "./model";
import { Zoom } from "./zoom";

export interface JaxprOptions {
  readonly locale: Locale;
  readonly visit?: Visit;
  /** The engine that lays the graph out, at once or once it is loaded. */
  readonly engine: LayoutEngine | Promise<LayoutEngine>;
}

/** Equations beyond this number start folded, so that the first look is at the whole. */
const OPEN_EQUATIONS = 40;

/** A jaxpr explorer. */
export class JaxprView {
  readonly element: HTMLElement;
  private readonly folded = new Set<string>();
  private readonly all: Equation[];
  private readonly card = el("div", { class: "saem-card", "aria-live": "polite" });
  private readonly graph: Zoom;
  private readonly lines = el("div", { class: "saem-scroll saem-code", role: "tree" });
  private readonly linker: Linker;

  constructor(
    private readonly model: JaxprModel,
    private readonly options: JaxprOptions
  ) {
    const { locale } = options;
    this.all = equations(model.body);
    this.graph = new Zoom(locale);
    if (this.all.length > OPEN_EQUATIONS) {
      this.all.filter(e => e.nested.length > 0).forEach(e => this.folded.add(e.id));
    }
    this.lines.setAttribute("aria-label", locale.say("jaxpr"));
    this.element = el(
      "section",
      { class: "saem-jaxpr" },
      this.header(),
      el(
        "div",
        { class: "saem-panes" },
        el("div", { class: "saem-column" }, this.sourcePane(), this.textPane()),
        el("div", { class: "saem-column" }, pane(locale.say("graph"), "graph", this.graph.element))
      ),
      this.card,
      this.programPane()
    );
    this.linker = new Linker(this.element, id => this.tell(id));
    this.element.addEventListener("click", event => this.onClick(event));
    this.element.addEventListener("keydown", event => this.onKey(event));
    this.drawLines();
    void this.drawGraph();
    this.tell(null);
  }

  private header(): HTMLElement {
    const { locale } = this.options;
    const backward = this.all.some(e => e.colour === "backward");
    const nested = this.all.some(e => e.nested.length > 0);
    const tone = (name: "forward" | "backward"): HTMLElement =>
      el("li", { class: `saem-tone saem-${name}` }, locale.say(name));
    return el(
      "header",
      { class: "saem-bar" },
      el("code", { class: "saem-title" }, this.model.title),
      backward && el("ul", { class: "saem-legend" }, tone("forward"), tone("backward")),
      nested &&
        el(
          "span",
          { class: "saem-tools" },
          el(
            "button",
            { type: "button", class: "saem-button", onclick: () => this.foldAll(true) },
            locale.say("fold.all")
          ),
          el(
            "button",
            { type: "button", class: "saem-button", onclick: () => this.foldAll(false) },
            locale.say("unfold.all")
          )
        )
    );
  }

  private sourcePane(): Child {
    const { sources } = this.model;
    const { locale } = this.options;
    return sources.map(block =>
      pane(
        `${locale.say("source")} · ${locale.pick(block.label)}`,
        "source",
        el("div", { class: "saem-scroll saem-code" }, sourceLines(block, this.all, this.model.places))
      )
    );
  }

  private textPane(): HTMLElement {
    return pane(this.options.locale.say("jaxpr"), "text", this.lines);
  }

  private programPane(): Child {
    const { program } = this.model;
    if (!program || program.length === 0) {
      return null;
    }
    return el(
      "details",
      { class: "saem-program saem-pane" },
      el("summary", {}, this.options.locale.say("program")),
      el(
        "div",
        { class: "saem-scroll saem-code" },
        program.map((line, at) =>
          el(
            "div",
            { class: "saem-line", "data-eqn": line.equations.join(" ") || null },
            el("span", { class: "saem-number", "aria-hidden": "true" }, String(at + 1)),
            el("span", { class: "saem-text" }, line.text)
          )
        )
      )
    );
  }

  private drawLines(): void {
    const { lines, body } = this.model;
    const ranges = folds(lines, body);
    const hidden = new Set<number>();
    for (const { equation, first, last } of ranges) {
      if (this.folded.has(equation.id)) {
        for (let at = first + 1; at <= last; at += 1) {
          hidden.add(at);
        }
      }
    }
    const heads = new Map(ranges.map(r => [r.first, r]));
    const rows = lines.map((line, at) => {
      const head = heads.get(at);
      const row = this.drawLine(line, head && { id: head.equation.id, count: head.count });
      row.hidden = hidden.has(at);
      return row;
    });
    rows.find(r => !r.hidden && r.hasAttribute("data-eqn"))?.setAttribute("tabindex", "0");
    this.lines.replaceChildren(...rows);
  }

  private drawLine(line: Line, fold: { id: string; count: number } | undefined): HTMLElement {
    const { locale } = this.options;
    const equation = this.all.find(e => e.id === line.equation);
    const folded = fold !== undefined && this.folded.has(fold.id);
    return el(
      "div",
      {
        class: equation?.colour === "backward" ? "saem-line saem-backward" : "saem-line",
        role: "treeitem",
        "aria-expanded": fold ? (folded ? "false" : "true") : null,
        "data-eqn": line.equation === null ? null : this.idsOf(line.equation, folded),
        "data-head": fold?.id,
        tabindex: line.equation === null ? null : -1
      },
      fold
        ? el(
            "span",
            {
              class: "saem-fold",
              "data-fold": fold.id,
              title: locale.say(folded ? "unfold" : "fold"),
              "aria-hidden": "true"
            },
            folded ? "▸" : "▾"
          )
        : el("span", { class: "saem-fold", "aria-hidden": "true" }),
      el("span", { class: "saem-text" }, " ".repeat(line.indent), line.tokens.map(drawToken)),
      folded &&
        el(
          "span",
          { class: "saem-folded", "data-fold": fold.id },
          locale.say("fold.count", { n: fold.count })
        )
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

  private async drawGraph(): Promise<void> {
    const { engine, locale } = this.options;
    const draw = (ready: LayoutEngine): void => {
      const graph = graphOf(this.model.body, this.folded);
      this.graph.show(drawGraph(graph, ready, locale));
      this.linker?.refresh();
    };
    try {
      if (engine instanceof Promise) {
        this.graph.say(locale.say("layingOut"));
        draw(await engine);
      } else {
        draw(engine);
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.graph.say(locale.say("noLayout", { why }));
    }
  }

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
    void this.drawGraph();
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
    this.lines.querySelector<HTMLElement>(`[data-head="${CSS.escape(id)}"]`)?.focus();
  }

  private onKey(event: KeyboardEvent): void {
    const target = event.target as Element;
    const node = target.closest("g.saem-node");
    if (node) {
      this.onNodeKey(event, node);
      return;
    }
    const line = target.closest<HTMLElement>(".saem-line[tabindex]");
    if (!line || !this.lines.contains(line)) {
      return;
    }
    const head = line.dataset.head;
    if (head && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      event.preventDefault();
      this.setFold(head, event.key === "ArrowLeft");
      this.focusHead(head);
      return;
    }
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      line.click();
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      const rows = [
        ...this.lines.querySelectorAll<HTMLElement>(".saem-line[tabindex]:not([hidden])")
      ];
      event.preventDefault();
      rows[rows.indexOf(line) + step]?.focus();
    }
  }

  private onNodeKey(event: KeyboardEvent, node: Element): void {
    const fold = node.getAttribute("data-fold-node");
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    } else if (fold && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      event.preventDefault();
      this.setFold(fold, event.key === "ArrowLeft");
      this.graph.element.querySelector<SVGElement>(`[data-fold-node="${CSS.escape(fold)}"]`)?.focus();
    }
  }

  /** Describe one equation under the panes. */
  private tell(id: string | null): void {
    const { locale, visit } = this.options;
    const equation = this.all.find(e => e.id === id);
    if (!equation) {
      this.card.replaceChildren(el("p", { class: "saem-hint" }, locale.say("pick")));
      return;
    }
    const fact = (name: string, ...value: Child[]): HTMLElement =>
      el("div", { class: "saem-fact" }, el("dt", {}, name), el("dd", {}, ...value));
    const { stack, parameters, inputs, outputs, primitive, colour } = equation;
    const place = this.model.places[equation.place ?? -1];
    const atoms = (list: typeof inputs): Child[] =>
      list.map(a =>
        el("code", { "data-var": a.id }, a.id === null ? a.text : `${a.text}:${a.type}`)
      );
    this.card.replaceChildren(
      el(
        "dl",
        { class: "saem-facts" },
        fact(
          locale.say("equation"),
          el("code", { class: `saem-primitive saem-${colour}` }, primitive)
        ),
        fact(locale.say("inputs"), atoms(inputs)),
        fact(locale.say("outputs"), atoms(outputs)),
        parameters.length > 0 &&
          fact(
            locale.say("parameters"),
            parameters.map(p => el("code", {}, `${p.name}=${p.value}`))
          ),
        stack.length > 0 && fact(locale.say("stack"), stack.join(" ▸ ")),
        place &&
          fact(
            locale.say("place"),
            placeLabel(place, locale, visit),
            place.text && el("code", { class: "saem-source-line" }, place.text)
          )
      )
    );
  }
}

function pane(title: string, name: string, body: HTMLElement): HTMLElement {
  return el(
    "div",
    { class: `saem-pane saem-pane-${name}` },
    el("h4", { class: "saem-pane-title" }, title),
    body
  );
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
