// How do a Python line, an equation and a node of the graph light up together?
//
// Whatever shows equations carries their ids in `data-eqn` (separated by blanks), whatever shows a
// variable its id in `data-var`. Pointing at, or focusing, one lights all that share an id; a
// click keeps it until the next click or Escape.
// Read before: dom.ts. Read after: jaxpr.ts.
// Invariant: at most one thing is kept, and pointing away restores it (test/jaxpr.test.ts).

interface Target {
  readonly equations: readonly string[];
  readonly variable: string | null;
}

const NOTHING: Target = { equations: [], variable: null };

export class Linker {
  private kept: Target = NOTHING;
  private shown: Target = NOTHING;

  constructor(
    private readonly root: HTMLElement,
    private readonly onShow: (equation: string | null) => void,
    private readonly onKeep: (equation: string) => void = () => {}
  ) {
    root.addEventListener("pointerover", event => this.show(targetOf(event.target) ?? this.kept));
    root.addEventListener("pointerleave", () => this.show(this.kept));
    root.addEventListener("focusin", event => this.show(targetOf(event.target) ?? this.kept));
    root.addEventListener("focusout", () => this.show(this.kept));
    root.addEventListener("click", event => this.onClick(event));
    root.addEventListener("keydown", event => {
      if (event.key === "Escape") {
        this.keep(NOTHING);
      }
    });
  }

  /** Keep an equation lit, as a click on it would. */
  keepEquation(id: string): void {
    this.keep({ equations: [id], variable: null });
  }

  /** Light again what is lit, after nodes were drawn anew. */
  refresh(): void {
    this.light(this.shown);
  }

  private onClick(event: Event): void {
    const element = event.target as Element;
    if (element.closest("[data-fold], summary, .saem-tools, input")) {
      return;
    }
    const target = targetOf(element);
    this.keep(target && !same(target, this.kept) ? target : NOTHING);
    const first = target?.equations[0];
    if (first) {
      this.onKeep(first);
      this.bring(first, element);
    }
  }

  private keep(target: Target): void {
    this.kept = target;
    this.show(target);
  }

  private show(target: Target): void {
    if (same(target, this.shown)) {
      return;
    }
    this.shown = target;
    this.light(target);
    this.onShow(target.equations[0] ?? null);
  }

  private light(target: Target): void {
    for (const node of this.root.querySelectorAll(".saem-on, .saem-var-on")) {
      node.classList.remove("saem-on", "saem-var-on");
    }
    for (const id of target.equations) {
      for (const node of this.root.querySelectorAll(`[data-eqn~="${CSS.escape(id)}"]`)) {
        node.classList.add("saem-on");
      }
    }
    if (target.variable !== null) {
      const name = CSS.escape(target.variable);
      for (const node of this.root.querySelectorAll(`[data-var="${name}"]`)) {
        node.classList.add("saem-var-on");
      }
    }
  }

  /** Scroll the other panes, and only them, so that the equation is in sight. */
  private bring(id: string, from: Element): void {
    const own = from.closest(".saem-pane");
    for (const pane of this.root.querySelectorAll<HTMLElement>(".saem-scroll")) {
      const node = pane.querySelector(`[data-eqn~="${CSS.escape(id)}"]`);
      if (!node || (own && own.contains(pane))) {
        continue;
      }
      const [outer, inner] = [pane.getBoundingClientRect(), node.getBoundingClientRect()];
      if (inner.top < outer.top || inner.bottom > outer.bottom) {
        pane.scrollTop += inner.top - outer.top - outer.height / 3;
      }
      if (inner.left < outer.left || inner.right > outer.right) {
        pane.scrollLeft += inner.left - outer.left - outer.width / 3;
      }
    }
  }
}

function targetOf(node: EventTarget | null): Target | null {
  const element = node as Element | null;
  const place = element?.closest("[data-eqn], [data-var]");
  if (!place) {
    return null;
  }
  const around = place.closest("[data-eqn]");
  return {
    equations: around?.getAttribute("data-eqn")?.split(" ").filter(Boolean) ?? [],
    variable: place.getAttribute("data-var")
  };
}

function same(a: Target, b: Target): boolean {
  return a.variable === b.variable && a.equations.join(" ") === b.equations.join(" ");
}
