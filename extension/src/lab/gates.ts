// How does a gate inside a notebook keep the keys that it answers to?
//
// A gate is made of the widgets of ipywidgets, which stand in the notebook as any output does.
// Read before: ../renderer/dom.ts (OWN_KEYS). Read after: index.ts.
// Invariant: a notebook's shortcuts work as before wherever else the focus is
// (tests/browser/test_journeys.py, `gates`).
import { OWN_KEYS } from "../renderer/dom";

/** Let arrow keys choose among a gate's options; a notebook would go to another cell. */
export function keepArrowKeys(page: Document): void {
  page.addEventListener("focusin", ({ target }) => {
    if (target instanceof HTMLInputElement && target.matches(".saem-gate [type='radio']")) {
      for (const [name, value] of Object.entries(OWN_KEYS)) {
        target.setAttribute(name, value);
      }
    }
  });
}
