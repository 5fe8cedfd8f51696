// How is drawn only what is in sight, where parts differ in height?
//
// A part is drawn when it comes near the window of its scroller and emptied when it is far away,
// but keeps its height. Where nothing can tell what is in sight, all is drawn.
// Read before: dom.ts. Read after: history.ts.
// Invariant: a part that is in sight is drawn (tests/browser/test_lens_views.py).

/** How far from the window a part is drawn. */
const NEAR = "600px";
/** The height of a part that was never drawn, in pixels. */
const GUESS = 84;

export class Sight {
  private readonly parts = new WeakMap<Element, () => void>();
  private readonly observer =
    typeof IntersectionObserver === "undefined"
      ? null
      : new IntersectionObserver(entries => entries.forEach(entry => this.seen(entry)), {
          rootMargin: NEAR,
          // Not yet among TypeScript's types: the margin inside an element that scrolls.
          scrollMargin: NEAR
        } as IntersectionObserverInit);

  /** Let `draw` fill `part` when it comes into sight. */
  fill(part: HTMLElement, draw: () => void): void {
    if (!this.observer) {
      draw();
      return;
    }
    part.style.height = `${GUESS}px`;
    this.parts.set(part, draw);
    this.observer.observe(part);
  }

  private seen({ target, isIntersecting, boundingClientRect }: IntersectionObserverEntry): void {
    const part = target as HTMLElement;
    if (isIntersecting && !part.hasChildNodes()) {
      part.style.height = "";
      this.parts.get(part)?.();
    } else if (!isIntersecting && part.hasChildNodes() && !part.contains(document.activeElement)) {
      part.style.height = `${boundingClientRect.height || GUESS}px`;
      part.replaceChildren();
    }
  }
}
