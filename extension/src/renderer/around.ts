// Which part of a large program is drawn as a graph?
//
// The equations near a chosen one: what it reads, what reads it, and so on, until there are enough.
// Read before: graph.ts. Read after: jaxpr.ts.
// Invariant: what comes from outside the part is an input of it (test/graph.test.ts).
import type { Atom, Body, Equation } from "../schema";

/** The part of a body around the top-level equation `id` (the last one, if it is not there). */
export function around(body: Body, id: string | null, most: number): Body {
  const top = body.equations;
  if (top.length <= most) {
    return body;
  }
  const start = top.find(e => id !== null && (id === e.id || id.startsWith(`${e.id}.`)));
  const makers = new Map<string, Equation>();
  const readers = new Map<string, Equation[]>();
  for (const equation of top) {
    for (const atom of equation.outputs) {
      if (atom.id !== null) {
        makers.set(atom.id, equation);
      }
    }
    for (const atom of equation.inputs) {
      if (atom.id !== null) {
        readers.set(atom.id, [...(readers.get(atom.id) ?? []), equation]);
      }
    }
  }
  const kept = new Set<Equation>();
  const queue = [start ?? top.at(-1)!];
  while (queue.length > 0 && kept.size < most) {
    const equation = queue.shift()!;
    if (kept.has(equation)) {
      continue;
    }
    kept.add(equation);
    for (const atom of equation.inputs) {
      const maker = atom.id === null ? undefined : makers.get(atom.id);
      if (maker) {
        queue.push(maker);
      }
    }
    for (const atom of equation.outputs) {
      queue.push(...(readers.get(atom.id ?? "") ?? []).slice(0, 8));
    }
  }
  const equations = top.filter(e => kept.has(e));
  const made = new Set(equations.flatMap(e => e.outputs.map(a => a.id)));
  const inputs = new Map<string, Atom>();
  for (const atom of equations.flatMap(e => e.inputs)) {
    if (atom.id !== null && !made.has(atom.id)) {
      inputs.set(atom.id, atom);
    }
  }
  const outside = new Set(
    top.filter(e => !kept.has(e)).flatMap(e => e.inputs.map(a => a.id))
  );
  const results = new Set(body.outputs.map(a => a.id));
  const outputs = equations
    .flatMap(e => e.outputs)
    .filter(a => a.id !== null && (results.has(a.id) || outside.has(a.id)));
  return { constants: [], inputs: [...inputs.values()], equations, outputs };
}
