// How are thousands of lines shown smoothly?
//
// Only the rows in sight are on the page, between two empty blocks that stand for the others. All
// rows have one height. Few rows are all there, so that the page's own search and copying work.
// Read before: dom.ts. Read after: jaxpr.ts, history.ts.
// Invariant: the row `i` that is drawn is `draw(i)` (test/rows.test.ts).
import { el } from "./dom";

/** So many rows are all put on the page. */
const ALL = 250;
const BEYOND = 20;

export class Rows {
  readonly element: HTMLElement;
  private readonly above = el("div", { "aria-hidden": "true" });
  private readonly window = el("div", { role: "presentation" });
  private readonly below = el("div", { "aria-hidden": "true" });
  private count = 0;
  private first = -1;
  private last = -1;
  /** The number of the first row that is drawn. */
  private start = 0;
  private frame = 0;

  constructor(
    private readonly height: number,
    private readonly draw: (index: number) => HTMLElement,
    private readonly drawn: () => void = () => {},
    attributes: Readonly<Record<string, string>> = {}
  ) {
    this.element = el(
      "div",
      { ...attributes, class: `saem-scroll ${attributes.class ?? "saem-code"}` },
      this.above,
      this.window,
      this.below
    );
    this.element.addEventListener("scroll", () => this.soon(), { passive: true });
    if (typeof ResizeObserver !== "undefined") {
      new ResizeObserver(() => this.soon()).observe(this.element);
    }
  }

  /** Show `count` rows, drawn anew; the row that has the keyboard's focus keeps it. */
  set(count: number): void {
    this.count = count;
    this.first = this.last = -1;
    this.update();
  }

  /** Bring a row into sight. */
  show(index: number): void {
    const { element } = this;
    const top = index * this.height;
    if (top < element.scrollTop || top + 2 * this.height > element.scrollTop + this.visible()) {
      element.scrollTop = Math.max(0, top - this.visible() / 3);
    }
    this.update();
  }

  /** The row of this number, if it is on the page. */
  row(index: number): HTMLElement | null {
    const inside = index >= this.first && index < this.last;
    return inside ? (this.window.children[index - this.first] as HTMLElement) : null;
  }

  private visible(): number {
    return this.element.clientHeight || 400;
  }

  private soon(): void {
    if (this.frame === 0 && typeof requestAnimationFrame !== "undefined") {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.update();
      });
    }
  }

  private update(): void {
    let [first, last] = [0, this.count];
    if (this.count > ALL) {
      const top = Math.floor(this.element.scrollTop / this.height);
      first = Math.max(0, top - BEYOND);
      last = Math.min(this.count, top + Math.ceil(this.visible() / this.height) + BEYOND);
    }
    if (first === this.first && last === this.last) {
      return;
    }
    const focused = this.focused();
    [this.first, this.last] = [first, last];
    this.start = first;
    const rows: HTMLElement[] = [];
    for (let i = first; i < last; i += 1) {
      rows.push(this.draw(i));
    }
    this.above.style.height = `${first * this.height}px`;
    this.below.style.height = `${(this.count - last) * this.height}px`;
    this.window.replaceChildren(...rows);
    this.drawn();
    if (focused >= 0) {
      const near = Math.min(Math.max(focused, first), last - 1);
      rows[near - first]?.focus({ preventScroll: true });
    }
  }

  /** The number of the row that has the focus; -1 if none has. */
  private focused(): number {
    const at = [...this.window.children].indexOf(document.activeElement as Element);
    return at < 0 ? -1 : this.start + at;
  }
}
