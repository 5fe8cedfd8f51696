// How does a command show a view of a cell without changing the notebook?
//
// The kernel is asked to run the cell under `%%lens`, outside the history; the view that comes back
// opens beside the notebook, or what to do where the kernel has no Saem.
// Read before: mime.ts. Read after: index.ts.
// Invariant: the notebook's outputs and its history of inputs stay as they were.
import { MainAreaWidget } from "@jupyterlab/apputils";
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { KernelMessage } from "@jupyterlab/services";
import { Widget } from "@lumino/widgets";
import { el, prose } from "../renderer/dom";
import { loadLens } from "./connection";
import { lensIcon } from "./icon";
import { MIME, showHere, type Surroundings } from "./mime";

/** Run the active cell under `%%lens view` and open what it shows. */
export async function ask(
  panel: NotebookPanel,
  view: "jaxpr" | "tracers",
  surroundings: Surroundings
): Promise<Widget | null> {
  const cell = panel.content.activeCell;
  const kernel = panel.sessionContext.session?.kernel;
  if (!cell || !kernel || cell.model.type !== "code") {
    return null;
  }
  const source = cell.model.sharedModel.getSource();
  const [first = "", ...rest] = source.split("\n");
  const code = first.startsWith("%%lens") ? rest.join("\n") : source;
  const quiet = { silent: false, store_history: false, stop_on_error: false };
  const shown = new Widget();
  shown.addClass("saem-output");
  const why = await loadLens(kernel);
  if (why !== null) {
    const locale = surroundings.locale();
    const says = prose(locale.say("panel.notInstalled", { why }));
    const note = el("p", { class: "saem-notice", role: "note" }, says);
    shown.node.append(el("div", { class: "saem", lang: locale.language }, note));
    return titled(shown, panel, view, surroundings);
  }
  const future = kernel.requestExecute(
    { code: `%%lens ${view} whole\n${code}`, ...quiet },
    true,
    { cellId: cell.model.id }
  );
  future.onIOPub = message => {
    const data = (message as KernelMessage.IDisplayDataMsg).content.data;
    if (message.header.msg_type === "display_data" && data?.[MIME]) {
      shown.node.append(showHere(data[MIME], surroundings));
    } else if (message.header.msg_type === "error") {
      const { ename, evalue } = (message as KernelMessage.IErrorMsg).content;
      shown.node.append(el("pre", { class: "saem-message" }, `${ename}: ${evalue}`));
    }
  };
  await future.done;
  return titled(shown, panel, view, surroundings);
}

function titled(
  shown: Widget,
  panel: NotebookPanel,
  view: "jaxpr" | "tracers",
  surroundings: Surroundings
): Widget {
  const main = new MainAreaWidget({ content: shown });
  const title = panel.title.label.replace(/\.ipynb$/, "");
  main.title.label = `${surroundings.locale().say(`ask.${view}`)} · ${title}`;
  main.title.icon = lensIcon;
  main.title.closable = true;
  main.id = `saem-lens-${view}-${Date.now()}`;
  return main;
}
