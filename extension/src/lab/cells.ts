// How do a function and a notebook's cell find each other?
//
// From the panel to the cell: go to a place. From the cell to the panel: a badge beside the
// prompt, with how often the cell made the engine trace.
// Read before: ../schema.ts. Read after: index.ts.
// Invariant: badges never change a notebook's content (they are page furniture only).
import type { Cell, ICellModel } from "@jupyterlab/cells";
import type { NotebookPanel } from "@jupyterlab/notebook";
import { el, prose } from "../renderer/dom";
import { glyph } from "../renderer/marks";
import type { HistoryModel, Place, Progress, Record } from "../schema";
import type { Locale } from "../renderer/locale";

function isAt(cell: Cell, place: Place): boolean {
  if (place.cell_id !== null) {
    return cell.model.id === place.cell_id;
  }
  const count: unknown = cell.model.toJSON().execution_count;
  return place.cell !== null && count === place.cell;
}

/** Go to a place in a notebook: make its cell active, in sight, with the cursor on the line. */
export async function visit(panel: NotebookPanel, place: Place): Promise<void> {
  const { content } = panel;
  const index = content.widgets.findIndex(cell => isAt(cell, place));
  const cell = content.widgets[index];
  if (!cell) {
    return;
  }
  content.activeCellIndex = index;
  await content.scrollToItem(index, "smart");
  const line = Math.min(place.line, cell.model.sharedModel.getSource().split("\n").length) - 1;
  cell.editor?.setCursorPosition({ line: Math.max(0, line), column: place.column });
  cell.node.classList.remove("saem-visited");
  void cell.node.offsetWidth; // restarts the animation
  cell.node.classList.add("saem-visited");
}

interface Tally {
  readonly kind: Record["kind"];
  readonly count: number;
  readonly compiles: number;
  readonly seconds: number;
  readonly key: string;
}

const WEIGHT = { failed: 3, compile: 2, found: 1, trace: 0, hit: -1 } as const;

/** What each cell made the engine do: the weightiest kind, how many traces, and whose. */
function tally(history: HistoryModel): Map<string, Tally> {
  const tallies = new Map<string, Tally>();
  for (const { summary, records } of history.functions) {
    for (const { caller, kind, seconds } of records) {
      const id = caller?.cell_id ?? (caller ? null : summary.place?.cell_id);
      if (!id || kind === "hit") {
        continue;
      }
      const old = tallies.get(id);
      const heavier = !old || WEIGHT[kind] >= WEIGHT[old.kind];
      tallies.set(id, {
        kind: heavier ? kind : old.kind,
        key: heavier ? summary.key : old.key,
        count: (old?.count ?? 0) + 1,
        compiles: (old?.compiles ?? 0) + (kind === "compile" ? 1 : 0),
        seconds:
          (old?.seconds ?? 0) +
          (seconds.trace ?? 0) +
          (seconds.lower ?? 0) +
          (seconds.compile ?? 0)
      });
    }
  }
  return tallies;
}

/** Put badges on a notebook's cells, or, without a history, take them away. */
export function badges(
  panel: NotebookPanel,
  history: HistoryModel | null,
  locale: Locale,
  reveal: (key: string) => void
): void {
  const tallies = history ? tally(history) : new Map<string, Tally>();
  for (const cell of panel.content.widgets) {
    const old = cell.node.querySelector(":scope > .saem-badge");
    const found = tallies.get(cell.model.id);
    const state = found
      ? `${found.kind} ${found.count} ${found.compiles} ${locale.language}`
      : "";
    const title =
      found &&
      locale.say("panel.badge", {
        n: found.count,
        compiles: found.compiles,
        seconds: locale.seconds(found.seconds)
      });
    if (old?.getAttribute("data-state") === state && old.getAttribute("title") === title) {
      continue;
    }
    old?.remove();
    if (found) {
      cell.node.appendChild(
        el(
          "button",
          {
            type: "button",
            class: `saem-badge saem-kind-${found.kind}`,
            "data-state": state,
            title,
            "aria-label": title,
            onclick: () => reveal(found.key)
          },
          glyph(found.kind),
          found.count > 1 && String(found.count)
        )
      );
    }
  }
}

/** Say on the cell that runs what the engine has been doing for a while. */
export function running(panel: NotebookPanel, progress: Progress | null, locale: Locale): void {
  for (const old of panel.node.querySelectorAll(".saem-running")) {
    old.remove();
  }
  const place = progress?.place;
  const cell = place && panel.content.widgets.find(c => isAt(c, place));
  if (!progress || progress.activity === "idle" || !cell) {
    return;
  }
  const name = progress.function;
  const node = el(
    "p",
    { class: "saem-running saem", role: "status" },
    el("span", { class: "saem-spinner", "aria-hidden": "true" }),
    el(
      "span",
      {},
      prose(locale.say(`progress.${progress.activity}`, { name })),
      progress.why && [" · ", prose(locale.pick(progress.why))]
    )
  );
  cell.node.appendChild(node);
}

/** Does the source of a cell speak of Saem? Kernels that never ran such a cell are left alone. */
export function mentionsSaem(model: ICellModel): boolean {
  return /\bsaem\b/.test(model.sharedModel.getSource());
}
