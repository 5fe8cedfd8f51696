// How are thousands of lines shown smoothly?
//
// Only the rows in sight are on the page, between two empty blocks that stand for the others. All
// rows have one height. Few rows are all there, so that the page's own search and copying work.
// Of rows with a tabindex, Tab reaches the one that had the keyboard's focus last. While that one
// is out of sight, the element around the rows has the focus for it, if it has a tabindex.
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
  /** The row that had the keyboard's focus last. */
  current = 0;
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
    this.element.addEventListener("focusin", event => {
      const at = [...this.window.children].indexOf(event.target as Element);
      if (at >= 0) {
        this.current = this.first + at;
        this.rove();
      }
    });
    this.element.addEventListener("scroll", () => this.soon(), { passive: true });
    if (typeof ResizeObserver !== "undefined") {
      new ResizeObserver(() => this.soon()).observe(this.element);
    }
  }

  /** Show `count` rows, drawn anew; the row that has the keyboard's focus keeps it. */
  set(count: number): void {
    this.count = count;
    this.update(true);
  }

  /** Give a row the keyboard's focus, in sight. */
  focus(index: number): void {
    if (!this.row(index)) {
      this.show(index);
    }
    this.row(index)?.focus({ preventScroll: true });
    this.row(index)?.scrollIntoView?.({ block: "nearest" });
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

  private update(anew = false): void {
    let [first, last] = [0, this.count];
    if (this.count > ALL) {
      const top = Math.floor(this.element.scrollTop / this.height);
      first = Math.max(0, top - BEYOND);
      last = Math.min(this.count, top + Math.ceil(this.visible() / this.height) + BEYOND);
    }
    if (!anew && first === this.first && last === this.last) {
      return;
    }
    const { activeElement } = document;
    const focused =
      this.window.contains(activeElement) ||
      (activeElement === this.element && !this.row(this.current));
    [this.first, this.last] = [first, last];
    const rows: HTMLElement[] = [];
    for (let i = first; i < last; i += 1) {
      rows.push(this.draw(i));
    }
    this.above.style.height = `${first * this.height}px`;
    this.below.style.height = `${(this.count - last) * this.height}px`;
    this.window.replaceChildren(...rows);
    this.rove();
    this.drawn();
    if (focused) {
      this.element.focus({ preventScroll: true });
      this.row(this.current)?.focus({ preventScroll: true });
    }
  }

  /** Tab reaches the current row, or the first on the page if that one is not there. */
  private rove(): void {
    const rows = [...this.window.children].filter(row => row.hasAttribute("tabindex"));
    const current = this.row(this.current);
    const reached = current && rows.includes(current) ? current : rows[0];
    rows.forEach(row => row.setAttribute("tabindex", row === reached ? "0" : "-1"));
  }
}
