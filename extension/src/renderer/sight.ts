// How is drawn only what is in sight, where parts differ in height?
//
// A part is drawn when it comes near the window of its scroller. When it is far away it keeps its
// height and its name, so that a page's own search finds it. Where nothing can tell what is in
// sight, all is drawn.
// Read before: dom.ts. Read after: history.ts.
// Invariant: a part that is in sight is drawn (tests/browser/test_long_history.py).
import { append, el, type Child } from "./dom";

/** How far from the window a part is drawn. */
const NEAR = "300px";
/** The height of a part that was never drawn, in pixels. */
const GUESS = 130;

/** What a part shows while it is in sight, and while it is not. */
interface Part {
  readonly draw: () => readonly Child[];
  readonly name: string;
}

export class Sight {
  private readonly parts = new WeakMap<Element, Part>();
  private readonly observer =
    typeof IntersectionObserver === "undefined"
      ? null
      : new IntersectionObserver(entries => entries.forEach(entry => this.seen(entry)), {
          rootMargin: NEAR,
          // Not yet among TypeScript's types: the margin inside an element that scrolls.
          scrollMargin: NEAR
        } as IntersectionObserverInit);

  /** Let `draw` fill `part` now, or when it comes into sight; until then it holds its `name`. */
  fill(part: HTMLElement, name: string, draw: Part["draw"], now: boolean): void {
    if (now || !this.observer) {
      append(part, draw());
    } else {
      leave(part, name, GUESS);
    }
    this.parts.set(part, { draw, name });
    this.observer?.observe(part);
  }

  private seen({ target, isIntersecting, boundingClientRect }: IntersectionObserverEntry): void {
    const part = target as HTMLElement;
    const { draw, name } = this.parts.get(part)!;
    if (isIntersecting === isDrawn(part)) {
      return;
    }
    if (isIntersecting) {
      part.classList.remove("saem-away");
      part.style.height = "";
      part.replaceChildren();
      append(part, draw());
    } else if (!part.contains(document.activeElement)) {
      leave(part, name, boundingClientRect.height || GUESS);
    }
  }
}

/** Does this part hold what it shows in sight? */
export function isDrawn(part: Element): boolean {
  return !part.classList.contains("saem-away");
}

/** Leave the name alone in a part that keeps its height. */
function leave(part: HTMLElement, name: string, height: number): void {
  part.classList.add("saem-away");
  part.style.height = `${height}px`;
  part.replaceChildren(el("code", { class: "saem-name" }, name));
}
