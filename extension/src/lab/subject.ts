// What can the panel follow: a notebook or a console?
//
// Read before: nothing. Read after: follower.ts.
// Invariant: a subject that does not mention Saem gets no message from us.
import type { ISessionContext } from "@jupyterlab/apputils";
import type { ConsolePanel } from "@jupyterlab/console";
import type { NotebookPanel } from "@jupyterlab/notebook";
import { mentionsSaem } from "./cells";

export interface Subject {
  readonly widget: NotebookPanel | ConsolePanel;
  readonly notebook: NotebookPanel | null;
  readonly context: ISessionContext;
  readonly ready: Promise<unknown>;
  readonly title: () => string;
  readonly mentions: () => boolean;
}

export function ofNotebook(panel: NotebookPanel): Subject {
  return {
    widget: panel,
    notebook: panel,
    context: panel.sessionContext,
    ready: Promise.all([panel.context.ready, panel.sessionContext.ready]),
    title: () => panel.title.label,
    mentions: () => [...(panel.content.model?.cells ?? [])].some(mentionsSaem)
  };
}

export function ofConsole(panel: ConsolePanel): Subject {
  return {
    widget: panel,
    notebook: null,
    context: panel.sessionContext,
    ready: panel.sessionContext.ready,
    title: () => panel.title.label,
    mentions: () => [...panel.console.cells].some(cell => mentionsSaem(cell.model))
  };
}
