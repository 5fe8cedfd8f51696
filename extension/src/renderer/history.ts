// What was traced and compiled, when, why and at what cost?
//
// One row per function, one mark per trace, compile, reuse or run of hits. A mark that is chosen
// (click, or arrow keys) opens its details under the row; a row without a chosen mark tells its
// newest reason. Of a long history the page holds little: rows that are out of sight, and the older
// marks of a row, are drawn when they are wanted.
// Read before: detail.ts, marks.ts, model.ts, sight.ts. Read after: view.ts.
// Invariant: what is seen is a function of the model, the choice and what is unfolded
// (test/history.test.ts).
import { OPERATIONS } from "../schema";
import type { FunctionHistory, FunctionSummary, HistoryModel, Record } from "../schema";
import { placeLabel, recordDetail, type Visit } from "./detail";
import { append, el, OWN_KEYS, prose, type Child } from "./dom";
import type { Locale } from "./locale";
import { glyph, isStale, legend } from "./marks";
import { csv, find, telling } from "./model";
import { button } from "./parts";
import { isDrawn, Sight } from "./sight";

export interface HistoryOptions {
  readonly locale: Locale;
  /** Set where the shell can go to a place in the source. */
  readonly visit?: Visit;
  /** A narrow page packs the marks; a wide one puts them in columns of one common order. */
  readonly narrow?: boolean;
}

/** More marks than this do not fit in columns side by side. */
const COLUMNS = 28;
/** A mark is so wide, and each letter of its count, in CSS pixels. */
const MARK = 22;
const LETTER = 8;
/** So many of the newest marks of a row are shown; older ones when asked for. */
const MARKS = 100;
/** A history of so many rows is drawn whole. */
const FEW = 40;
/** So many rows of a longer one are drawn at once; of the others, those that come into sight. */
const ROWS = 6;

/** A row on the page, and what it was drawn from. */
interface Drawn {
  readonly element: HTMLElement;
  readonly row: FunctionHistory;
  readonly open: number | null;
  readonly shown: number;
}

/** The history as a live view: `update` shows another model and keeps the reader's place. */
export class HistoryView {
  readonly element: HTMLElement;
  private chosen: number | null = null;
  private readonly drawn = new Map<string, Drawn>();
  /** How many marks of a row are shown, where the reader asked for more. */
  private readonly unfolded = new Map<string, number>();
  private readonly sight = new Sight();

  constructor(
    private model: HistoryModel,
    private options: HistoryOptions
  ) {
    this.element = el("section", { class: "saem-history" });
    this.element.addEventListener("click", event => this.onClick(event));
    this.element.addEventListener("keydown", event => this.onKey(event));
    this.draw();
  }

  /** Show `model`; the chosen mark stays chosen and keeps the focus. */
  update(model: HistoryModel, options: HistoryOptions = this.options): void {
    const { locale, visit, narrow } = this.options;
    if (options.locale !== locale || options.visit !== visit || options.narrow !== narrow) {
      this.drawn.clear();
    }
    this.model = model;
    this.options = options;
    if (this.chosen !== null && !find(model, this.chosen)) {
      this.chosen = null;
    }
    const focus = markOf(document.activeElement)?.dataset.record;
    const inside = this.element.contains(document.activeElement);
    this.draw();
    if (inside && focus) {
      this.element.querySelector<HTMLElement>(`[data-record="${focus}"]`)?.focus();
    }
  }

  /** Open the details of a record and bring them into sight. */
  choose(id: number | null): void {
    this.chosen = id;
    this.draw();
    if (id !== null) {
      const mark = this.element.querySelector<HTMLElement>(`[data-record="${id}"]`);
      mark?.focus({ preventScroll: true });
      this.element.querySelector(`[data-detail="${id}"]`)?.scrollIntoView?.({ block: "nearest" });
    }
  }

  /** Bring a function's row into sight and open its newest telling record. */
  reveal(key: string): void {
    const row = this.model.functions.find(f => f.summary.key === key);
    const record = row && telling(row);
    if (record) {
      this.choose(record.id);
    }
  }

  private draw(): void {
    const { model, options } = this;
    if (model.functions.length === 0) {
      this.element.replaceChildren(
        el("p", { class: "saem-empty" }, options.locale.say("empty"))
      );
      return;
    }
    const columns = options.narrow ? null : inColumns(model, options.locale);
    const rows = model.functions.map((row, at) => this.row(row, at, columns));
    this.element.replaceChildren(
      el("ol", { class: columns ? "saem-rows saem-aligned" : "saem-rows" }, rows),
      ...(model.dropped > 0 ? [dropped(model.dropped, options.locale)] : []),
      el(
        "div",
        { class: "saem-bar" },
        legend(model.functions.flatMap(f => f.records), options.locale),
        exports(model, options.locale)
      )
    );
  }

  /** The row as it was, if nothing of it changed, else drawn anew. */
  private row(row: FunctionHistory, at: number, columns: Columns | null): HTMLElement {
    const { key } = row.summary;
    const open = row.records.find(r => r.id === this.chosen)?.id ?? null;
    const first = row.records.findIndex(r => r.id === open);
    const opened = first < 0 ? 0 : row.records.length - first;
    const shown = Math.max(this.unfolded.get(key) ?? MARKS, opened);
    const before = this.drawn.get(key);
    const same = before?.row === row && before.open === open && before.shown === shown;
    if (before && same && !columns) {
      return before.element;
    }
    const element = el("li", {
      class: open === null ? "saem-row" : "saem-row saem-open",
      "data-function": key
    });
    const draw = (): Child[] => [
      head(row.summary, this.options),
      ...below(row, this.options, columns, open, shown)
    ];
    if (this.model.functions.length <= FEW) {
      append(element, draw());
      this.drawn.set(key, { element, row, open, shown });
      return element;
    }
    const now = at < ROWS || open !== null || (before !== undefined && isDrawn(before.element));
    this.sight.fill(element, row.summary.name, draw, now);
    this.drawn.set(key, { element, row, open, shown });
    return element;
  }

  private onClick(event: Event): void {
    const target = event.target as Element;
    if (target.closest("[data-close]")) {
      this.choose(null);
      return;
    }
    const older = target.closest<HTMLElement>("[data-older]")?.dataset.older;
    if (older !== undefined) {
      this.unfolded.set(older, (this.unfolded.get(older) ?? MARKS) + 4 * MARKS);
      this.draw();
      return;
    }
    const mark = markOf(target);
    if (mark) {
      const id = Number(mark.dataset.record);
      this.choose(this.chosen === id ? null : id);
      this.element.querySelector<HTMLElement>(`[data-record="${id}"]`)?.focus();
    }
  }

  private onKey(event: KeyboardEvent): void {
    if (event.key === "Escape" && this.chosen !== null) {
      const id = this.chosen;
      this.choose(null);
      this.element.querySelector<HTMLElement>(`[data-record="${id}"]`)?.focus();
      event.stopPropagation();
      return;
    }
    const mark = markOf(event.target as Element);
    if (!mark) {
      return;
    }
    const marks = [...(mark.parentElement?.querySelectorAll<HTMLElement>("[data-record]") ?? [])];
    const at = marks.indexOf(mark);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: marks.length - 1 }[event.key];
    const next = to === undefined ? undefined : marks[to];
    if (next) {
      event.preventDefault();
      this.choose(Number(next.dataset.record));
    }
  }
}

function markOf(node: Element | null): HTMLElement | null {
  return node?.closest<HTMLElement>("[data-record]") ?? null;
}

/** The columns of all records' marks, in their order: which record, and how wide. */
interface Columns {
  readonly ids: readonly number[];
  readonly widths: string;
}

/** The columns, if the records are so few that their marks stand side by side. */
function inColumns(model: HistoryModel, locale: Locale): Columns | null {
  const records = model.functions.flatMap(f => f.records).sort((a, b) => a.id - b.id);
  if (records.length > COLUMNS) {
    return null;
  }
  const widths = records.map(({ count }) => {
    const least = count > 1 ? MARK + LETTER * locale.brief(count).length : MARK;
    return `minmax(${least}px,${Math.max(least, 34)}px)`;
  });
  return { ids: records.map(r => r.id), widths: widths.join(" ") };
}

/** Buttons that save the history as a file. */
function exports(model: HistoryModel, locale: Locale): HTMLElement {
  const save = (name: string, type: string, text: () => string): void => {
    const url = URL.createObjectURL(new Blob([text()], { type }));
    el("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return el(
    "span",
    { class: "saem-tools" },
    button(locale.say("export.json"), () =>
      save("saem-history.json", "application/json", () => JSON.stringify(model, null, 1))
    ),
    button(locale.say("export.csv"), () => save("saem-history.csv", "text/csv", () => csv(model)))
  );
}

/** A function's name, place and counts. */
function dropped(count: number, locale: Locale): HTMLElement {
  const said = `… ${locale.count(count)} ${locale.say("dropped.functions")}`;
  return el("p", { class: "saem-dim" }, said);
}

function head(summary: FunctionSummary, options: HistoryOptions): HTMLElement {
  const { locale, visit } = options;
  return el(
    "div",
    { class: "saem-row-head" },
    // What counts operations of the library is no function: it has a name in the reader's language.
    summary.key === OPERATIONS
      ? el("b", { class: "saem-name" }, locale.say("operations"))
      : el("code", { class: "saem-name" }, summary.name),
    summary.place && placeLabel(summary.place, locale, visit),
    summary.versions > 1 &&
      el("span", { class: "saem-versions" }, locale.say("version", { n: summary.versions })),
    counters(summary, locale)
  );
}

/** The last `shown` marks of a row, its warning, and the record that is open or telling. */
function below(
  row: FunctionHistory,
  options: HistoryOptions,
  columns: Columns | null,
  chosen: number | null,
  shown: number
): Child[] {
  const { summary } = row;
  const { locale } = options;
  const records = row.records.slice(-shown);
  const older = row.records.length - records.length;
  const open = records.find(r => r.id === chosen);
  return [
    el(
      "div",
      {
        class: "saem-track",
        role: "group",
        "aria-label": locale.say("marks", { name: summary.name }),
        style: columns && `grid-template-columns:${columns.widths}`
      },
      older > 0 &&
        el(
          "button",
          { type: "button", class: "saem-older saem-link", "data-older": summary.key },
          locale.say("older", { n: locale.count(older) })
        ),
      row.dropped > 0 &&
        older === 0 &&
        !columns &&
        el(
          "span",
          { class: "saem-dropped", title: locale.say("dropped") },
          `+${locale.count(row.dropped)}`
        ),
      records.map(record => drawMark(record, records, locale, columns, chosen))
    ),
    summary.warning &&
      el("p", { class: "saem-warning", role: "note" }, "⚠ ", prose(locale.pick(summary.warning))),
    open ? details(open, options) : brief(row, locale)
  ];
}

function counters(summary: FunctionSummary, locale: Locale): HTMLElement {
  const counts = (["compiles", "found", "traces", "hits"] as const).filter(
    name => name === "compiles" || summary[name] > 0
  );
  return el(
    "ul",
    { class: "saem-counters" },
    counts.map(name =>
      el(
        "li",
        { class: `saem-count-${name}` },
        `${locale.say(name)} `,
        el("b", {}, locale.count(summary[name]))
      )
    ),
    el(
      "li",
      {},
      `${locale.say("seconds")} `,
      el("b", {}, locale.seconds(summary.seconds))
    )
  );
}

function drawMark(
  record: Record,
  records: readonly Record[],
  locale: Locale,
  columns: Columns | null,
  chosen: number | null
): HTMLElement {
  const inRow = records.some(r => r.id === chosen);
  const reachable = inRow ? record.id === chosen : record.id === records.at(-1)?.id;
  const headline = locale.pick(record.headline).replaceAll("`", "");
  const stale = isStale(record) ? " saem-stale" : "";
  const times = record.count > 1 ? ` ×${locale.brief(record.count)}` : "";
  return el(
    "button",
    {
      type: "button",
      class: `saem-mark saem-kind-${record.kind}${stale}`,
      "data-record": record.id,
      ...OWN_KEYS,
      "aria-pressed": record.id === chosen ? "true" : "false",
      "aria-label": `${locale.say(`kind.${record.kind}`)}${times}: ${headline}`,
      title: headline,
      tabindex: reachable ? 0 : -1,
      style: columns && `grid-column:${columns.ids.indexOf(record.id) + 1}`
    },
    glyph(record.kind),
    record.count > 1 && el("span", { class: "saem-mark-count" }, `×${locale.brief(record.count)}`)
  );
}

function details(record: Record, options: HistoryOptions): Child {
  const { locale, visit } = options;
  const card = recordDetail(record, locale, visit);
  card.appendChild(
    el(
      "button",
      {
        type: "button",
        class: "saem-close",
        "data-close": true,
        "aria-label": locale.say("close")
      },
      "×"
    )
  );
  return card;
}

function brief(row: FunctionHistory, locale: Locale): Child {
  const record = telling(row);
  if (!record) {
    return null;
  }
  const reason = record.reasons[0];
  return el(
    "div",
    { class: "saem-brief" },
    el("p", { class: "saem-headline" }, prose(locale.pick(record.headline))),
    reason && el("p", { class: "saem-says" }, prose(locale.pick(reason.says)))
  );
}
