// How does a view live as a widget (Jupyter, Colab, VS Code)?
//
// The ESM that anywidget loads. Traits: `model` (the schema's JSON), `locale` ("" follows the
// browser) and, of a bench, `chips` (the list of transformations). The style comes beside it
// (saem.css), as anywidget's `_css`.
// Read before: ../renderer/view.ts. Read after: nothing.
// Invariant: a new value of a trait shows at once (tests/browser).
import { HistoryView } from "../renderer/history";
import { Locale } from "../renderer/locale";
import { show } from "../renderer/view";
import { VERSION, type HistoryModel, type Model } from "../schema";

interface WidgetModel {
  get(name: "model"): unknown;
  get(name: "locale"): string | null | undefined;
  get(name: "chips"): string[] | undefined;
  set(name: "chips", value: string[]): void;
  save_changes(): void;
  on(event: string, callback: () => void): void;
  off(event: string, callback: () => void): void;
}

/** Show the widget's model in `el`; returns what must be called when the view goes away. */
export function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  let history: HistoryView | null = null;
  const draw = (): void => {
    const locale = Locale.of(model.get("locale"));
    const raw = model.get("model");
    const data = (typeof raw === "string" ? JSON.parse(raw) : raw) as Model;
    if (data?.kind === "history" && data.version === VERSION) {
      if (history?.element.isConnected) {
        history.update(data as HistoryModel, { locale });
        return;
      }
      history = new HistoryView(data as HistoryModel, { locale });
      const root = document.createElement("div");
      root.className = "saem";
      root.lang = locale.language;
      root.appendChild(history.element);
      el.replaceChildren(root);
      return;
    }
    history = null;
    const choose = (chips: string[]): void => {
      model.set("chips", chips);
      model.save_changes();
    };
    const view = show(data, { locale, choose: data?.kind === "bench" ? choose : undefined });
    replace(el, view);
  };
  draw();
  model.on("change:model", draw);
  model.on("change:locale", draw);
  return () => {
    model.off("change:model", draw);
    model.off("change:locale", draw);
  };
}

/** Put `view` into `el`; what takes the place of the focused control has the focus. */
function replace(el: HTMLElement, view: HTMLElement): void {
  const controls = (): HTMLElement[] => [
    ...el.querySelectorAll<HTMLElement>("button:enabled, input, summary, [tabindex]")
  ];
  const name = (node?: HTMLElement): string | null | undefined =>
    node?.getAttribute("aria-label") ?? node?.textContent;
  const old = controls();
  const at = old.indexOf(document.activeElement as HTMLElement);
  el.replaceChildren(view);
  if (at >= 0) {
    const now = controls();
    const same = now.find(node => name(node) === name(old[at]));
    (same ?? now[Math.min(at, now.length - 1)])?.focus();
  }
}

export default { render };
