// What can the panel follow: a notebook or a console?
//
// Read before: nothing. Read after: follower.ts.
// Invariant: a subject that does not mention Saem gets no message from us.
import type { ISessionContext } from "@jupyterlab/apputils";
import type { ConsolePanel } from "@jupyterlab/console";
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { ICellModel } from "@jupyterlab/cells";
import { mentionsSaem } from "./cells";

/** What the kernel "Saem" runs, under whatever name it was installed. */
const KERNEL = "saem.dropin.kernel";

export interface Subject {
  readonly widget: NotebookPanel | ConsolePanel;
  readonly notebook: NotebookPanel | null;
  readonly context: ISessionContext;
  readonly ready: Promise<unknown>;
  readonly title: () => string;
  /** Does any of its cells speak to Saem? */
  readonly mentions: () => boolean;
  /** Does this cell? */
  readonly speaks: (cell: ICellModel) => boolean;
}

/** In the kernel "Saem" every cell speaks to Saem, in others those that name it. */
function speaks(context: ISessionContext): (cell: ICellModel) => boolean {
  return cell => {
    const specs = context.specsManager.specs?.kernelspecs;
    const argv = specs?.[context.session?.kernel?.name ?? ""]?.argv;
    return argv?.includes(KERNEL) || mentionsSaem(cell);
  };
}

export function ofNotebook(panel: NotebookPanel): Subject {
  return {
    widget: panel,
    notebook: panel,
    context: panel.sessionContext,
    ready: Promise.all([panel.context.ready, panel.sessionContext.ready]),
    title: () => panel.title.label,
    mentions: () => [...(panel.content.model?.cells ?? [])].some(speaks(panel.sessionContext)),
    speaks: speaks(panel.sessionContext)
  };
}

export function ofConsole(panel: ConsolePanel): Subject {
  return {
    widget: panel,
    notebook: null,
    context: panel.sessionContext,
    ready: panel.sessionContext.ready,
    title: () => panel.title.label,
    mentions: () =>
      [...panel.console.cells].some(cell => speaks(panel.sessionContext)(cell.model)),
    speaks: speaks(panel.sessionContext)
  };
}
