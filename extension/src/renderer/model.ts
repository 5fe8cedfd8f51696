// How does a history grow, and what does a jaxpr's text hold?
//
// Pure functions on the schema's models, with no page in sight.
// Read before: ../schema.ts. Read after: history.ts, jaxpr.ts.
// Invariant: `receive` never changes its argument (test/model.test.ts).
import { MOST_FUNCTIONS, MOST_RECORDS } from "../schema";
import type {
  Append,
  Body,
  Equation,
  FunctionHistory,
  HistoryModel,
  Line,
  Place,
  Record
} from "../schema";

/** The history after one more record; as in the kernel, the row unused for longest may go. */
export function receive(history: HistoryModel, message: Append): HistoryModel {
  const { function: summary, record } = message;
  const { functions } = history;
  const at = functions.findIndex(f => f.summary.key === summary.key);
  if (at >= 0) {
    const row = withRecord({ ...functions[at]!, summary }, record);
    return { ...history, functions: functions.with(at, row) };
  }
  const row = { summary, records: [record], dropped: 0 };
  if (functions.length < MOST_FUNCTIONS) {
    return { ...history, functions: [...functions, row] };
  }
  const times = functions.map(f => f.records.at(-1)?.time ?? 0);
  const oldest = times.indexOf(Math.min(...times));
  const kept = functions.toSpliced(oldest, 1);
  return { ...history, functions: [...kept, row], dropped: history.dropped + 1 };
}

/** The row with the record: a known id replaces, a new one goes to the end, the first may go. */
function withRecord(row: FunctionHistory, record: Record): FunctionHistory {
  const at = row.records.findLastIndex(r => r.id === record.id);
  if (at >= 0) {
    return { ...row, records: row.records.with(at, record) };
  }
  const over = Math.max(0, row.records.length + 1 - MOST_RECORDS);
  return { ...row, records: [...row.records.slice(over), record], dropped: row.dropped + over };
}

/** The newest record that says something: the last that is no hit, or one with a reason. */
export function telling(row: FunctionHistory): Record | undefined {
  // A hit has a reason when the program that it found was made of a value that changed since.
  return row.records.findLast(r => r.kind !== "hit" || r.reasons.length > 0) ?? row.records.at(-1);
}

/** The history as a table, a line for each mark; cells that a spreadsheet would run are quoted. */
export function csv(history: HistoryModel): string {
  const head = [
    "function", "kind", "count", "signature", "why", "old", "new", "trace_s", "lower_s",
    "compile_s", "flops", "caller", "time"
  ];
  const rows = history.functions.flatMap(({ summary, records }) =>
    records.map(r => [
      summary.name,
      r.kind,
      r.count,
      r.signature,
      r.reasons.map(x => x.says.en).join("; "),
      r.reasons.map(x => x.old ?? "").join("; "),
      r.reasons.map(x => x.new ?? "").join("; "),
      r.seconds.trace,
      r.seconds.lower,
      r.seconds.compile,
      r.cost?.flops,
      r.caller?.label.en,
      new Date(r.time * 1000).toISOString()
    ])
  );
  const cell = (value: unknown): string => {
    const text = String(value ?? "");
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [head, ...rows].map(row => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** JSON as a value in which equal texts are one: a long history says the same many times. */
export function parse(json: string): unknown {
  const texts = new Map<string, string>();
  const walk = (part: unknown): void => {
    if (typeof part !== "object" || part === null) {
      return;
    }
    const fields = part as { [name: string]: unknown };
    for (const name of Object.keys(fields)) {
      const value = fields[name];
      if (typeof value === "string") {
        const known = texts.get(value);
        if (known === undefined) {
          texts.set(value, value);
        } else {
          fields[name] = known;
        }
      } else {
        walk(value);
      }
    }
  };
  const value: unknown = JSON.parse(json);
  walk(value);
  return value;
}

/** The record with this id, and its row. */
export function find(
  history: HistoryModel,
  id: number
): { row: FunctionHistory; record: Record } | undefined {
  for (const row of history.functions) {
    const record = row.records.find(r => r.id === id);
    if (record) {
      return { row, record };
    }
  }
  return undefined;
}

/** Every equation of a body and of the bodies nested in it, in printing order. */
export function equations(body: Body): Equation[] {
  return body.equations.flatMap(e => [e, ...e.nested.flatMap(n => equations(n.body))]);
}

/** Does an equation with this id lie inside (or is it) the equation `outer`? */
export function within(id: string | null, outer: string): boolean {
  return id !== null && (id === outer || id.startsWith(`${outer}.`));
}

/**
 * The equations that have nested jaxprs, each with the range of printed lines it fills; those of a
 * jaxpr that stands in front, not the lines between it and the equation.
 */
export function folds(
  lines: readonly Line[],
  body: Body
): { equation: Equation; first: number; last: number; count: number }[] {
  return equations(body)
    .filter(e => e.nested.length > 0)
    .map(equation => {
      const first = lines.findIndex(l => l.equation === equation.id);
      const after = lines.findIndex((l, i) => i > first && !within(l.equation, equation.id));
      return {
        equation,
        first,
        last: after < 0 ? lines.length - 1 : after - 1,
        count: equation.nested.reduce((n, { body: inner }) => n + equations(inner).length, 0)
      };
    })
    .filter(f => f.first >= 0 && f.last > f.first);
}

/** Is this line of this file part of the place? */
export function covers(place: Place | undefined, file: string, line: number): boolean {
  return (
    place !== undefined &&
    place.file === file &&
    place.line <= line &&
    line <= Math.max(place.line, place.end_line)
  );
}
