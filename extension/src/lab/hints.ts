// How does the X-ray stand in a cell's own editor?
//
// As inlay hints at the ends of lines: CodeMirror decorations that are no part of the text. They go
// when the text changes, and are put only beside lines that are as they were when they ran.
// Read before: ../renderer/tracers.ts. Read after: follower.ts.
// Invariant: a hint never changes a notebook's content (tests/browser/test_lab_views.py).
import type { Cell } from "@jupyterlab/cells";
import { CodeMirrorEditor } from "@jupyterlab/codemirror";
import type { NotebookPanel } from "@jupyterlab/notebook";
import { StateEffect, StateField, type Extension, type Range } from "@codemirror/state";
import { Decoration, EditorView, WidgetType, type DecorationSet } from "@codemirror/view";
import { directed } from "../renderer/dom";
import type { Locale } from "../renderer/locale";
import { defLine, valueHint } from "../renderer/tracers";
import type { SeenFunction, TracersModel } from "../schema";

interface Hint {
  readonly line: number;
  readonly text: string;
  readonly title: string;
  readonly tone: string;
}

const put = StateEffect.define<readonly Hint[]>();

class HintWidget extends WidgetType {
  constructor(private readonly hint: Hint) {
    super();
  }

  override eq(other: HintWidget): boolean {
    const { text, title, tone } = this.hint;
    return other.hint.text === text && other.hint.title === title && other.hint.tone === tone;
  }

  toDOM(): HTMLElement {
    const node = document.createElement("span");
    node.className = `saem-inlay saem-inlay-${this.hint.tone}`;
    node.textContent = directed(this.hint.text);
    node.title = directed(this.hint.title);
    node.setAttribute("aria-hidden", "true");
    return node;
  }
}

const field = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(old, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(put)) {
        return decorations(transaction.state.doc, effect.value);
      }
    }
    return transaction.docChanged ? Decoration.none : old;
  },
  provide: (f): Extension => EditorView.decorations.from(f)
});

function decorations(
  text: { lines: number; line: (n: number) => { to: number } },
  hints: readonly Hint[]
): DecorationSet {
  const ranges: Range<Decoration>[] = hints
    .filter(h => h.line >= 1 && h.line <= text.lines)
    .map(h => {
      const widget = new HintWidget(h);
      return Decoration.widget({ widget, side: 1 }).range(text.line(h.line).to);
    });
  return Decoration.set(ranges, true);
}

/** The hints of one function for a cell with these lines. */
function hintsOf(seen: SeenFunction, lines: readonly string[], locale: Locale): Hint[] {
  const def = defLine(seen);
  return seen.lines.flatMap(({ line, text, values }) => {
    if (lines[line - 1]?.trimEnd() !== text.trimEnd()) {
      return []; // the cell is not what ran
    }
    const shown = line === def ? [...seen.arguments, ...values] : values;
    const attempts = seen.attempts.filter(a => a.line === line);
    const loops = seen.loops.filter(l => l.line === line);
    const plain = (said: string): string => said.replaceAll("`", "");
    return [
      ...shown.map(v => ({
        line,
        text: valueHint(v),
        title: `${seen.name}: ${locale.say(`xray.${v.kind}`)}`,
        tone: v.kind as string
      })),
      ...attempts.map(a => ({
        line,
        text: `${a.allowed ? "✓" : "✗"} ${a.what}`,
        title: plain(locale.pick(a.says)),
        tone: a.allowed ? "array" : "refused"
      })),
      ...loops.map(l => ({
        line,
        text: `↻ ×${l.times}`,
        title: plain(locale.pick(l.says)),
        tone: "loop"
      }))
    ];
  });
}

function viewOf(cell: Cell): EditorView | null {
  return cell.editor instanceof CodeMirrorEditor ? cell.editor.editor : null;
}

/** Put the hints of an X-ray into the cells it is about; of each place the last function counts. */
export function showHints(panel: NotebookPanel, model: TracersModel, locale: Locale): void {
  for (const cell of panel.content.widgets) {
    const mine = model.functions.filter(f => f.cell_id === cell.model.id);
    const byStart = new Map(mine.map(f => [f.lines[0]?.line, f]));
    if (mine.length > 0) {
      // A cell that was not in sight yet has no editor.
      void cell.ready.then(() => apply(cell, [...byStart.values()], locale));
    }
  }
}

/** Show or hide the hints of all notebooks; hidden ones stay where they are. */
export function hideHints(hidden: boolean): void {
  document.body.classList.toggle("saem-no-hints", hidden);
}

function apply(cell: Cell, functions: readonly SeenFunction[], locale: Locale): void {
  const view = viewOf(cell);
  if (!view) {
    return;
  }
  const lines = cell.model.sharedModel.getSource().split("\n");
  const hints = functions.flatMap(f => hintsOf(f, lines, locale));
  if (view.state.field(field, false) === undefined) {
    view.dispatch({ effects: StateEffect.appendConfig.of(field) });
  }
  view.dispatch({ effects: put.of(hints) });
}
