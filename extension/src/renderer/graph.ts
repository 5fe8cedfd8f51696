// Which boxes and arrows does a jaxpr consist of?
//
// `graphOf` turns a body into nodes (inputs, equations, outputs) and edges (values that flow). An
// equation that holds a jaxpr of its own becomes a group with a graph inside, unless it is folded.
// Sizes come from the text, since the text is set in one fixed-width face.
// Read before: ../schema.ts, model.ts. Read after: layout.ts, draw.ts.
// Invariant: every edge joins two nodes of the same graph (test/graph.test.ts).
import type { Atom, Body, Equation } from "../schema";
import { equations } from "./model";

export interface GraphNode {
  readonly id: string;
  readonly kind: "input" | "constant" | "output" | "equation" | "group";
  readonly label: string;
  readonly note: string;
  /** Equations that light up with this node; a folded one stands for those inside it. */
  readonly equations: readonly string[];
  readonly variable: string | null;
  readonly backward: boolean;
  readonly folds: boolean;
  readonly inner: readonly Graph[];
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly variable: string;
  readonly label: string;
  readonly backward: boolean;
}

export interface Graph {
  readonly label: string;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

/** The graph of a body; equations whose ids are in `folded` show nothing of their inside. */
export function graphOf(body: Body, folded: ReadonlySet<string>, label = "", scope = ""): Graph {
  const maker = new Map<string, { node: string; backward: boolean }>();
  const nodes: GraphNode[] = [];
  const edges: GraphEdge[] = [];
  const connect = (atoms: readonly Atom[], to: string, backward: boolean): void => {
    const seen = new Set<string>();
    for (const atom of atoms) {
      const from = atom.id === null ? undefined : maker.get(atom.id);
      if (from && atom.id !== null && !seen.has(atom.id)) {
        seen.add(atom.id);
        edges.push({
          from: from.node,
          to,
          variable: atom.id,
          label: `${atom.text}:${atom.type}`,
          backward: backward && from.backward
        });
      }
    }
  };
  for (const [kind, atoms] of [["constant", body.constants], ["input", body.inputs]] as const) {
    for (const atom of atoms) {
      const id = `${scope}in.${atom.id ?? atom.text}`;
      nodes.push(edgeNode(id, kind, atom));
      if (atom.id !== null) {
        maker.set(atom.id, { node: id, backward: false });
      }
    }
  }
  for (const equation of body.equations) {
    const id = `${scope}${equation.id}`;
    nodes.push(equationNode(id, equation, folded));
    connect(equation.inputs, id, equation.colour === "backward");
    for (const atom of equation.outputs) {
      if (atom.id !== null) {
        maker.set(atom.id, { node: id, backward: equation.colour === "backward" });
      }
    }
  }
  for (const [at, atom] of body.outputs.entries()) {
    const id = `${scope}out.${at}`;
    nodes.push(edgeNode(id, "output", atom));
    connect([atom], id, true);
  }
  return { label, nodes, edges };
}

function edgeNode(id: string, kind: "input" | "constant" | "output", atom: Atom): GraphNode {
  return {
    id,
    kind,
    label: atom.text,
    note: atom.id === null ? "" : atom.type,
    equations: [],
    variable: atom.id,
    backward: false,
    folds: false,
    inner: []
  };
}

function equationNode(
  id: string,
  equation: Equation,
  folded: ReadonlySet<string>
): GraphNode {
  const folds = equation.nested.length > 0;
  const open = folds && !folded.has(equation.id);
  const literals = equation.inputs.filter(a => a.id === null).map(a => a.text);
  const inside = equation.nested.flatMap(n => equations(n.body)).map(e => e.id);
  const name = equation.parameters.find(p => p.name === "name")?.value;
  const title = name ? `${equation.primitive} ${name}` : equation.primitive;
  return {
    id,
    kind: open ? "group" : "equation",
    label: [title, ...literals].join(" "),
    note: equation.outputs.map(a => a.type).join(", "),
    equations: open ? [equation.id] : [equation.id, ...inside],
    variable: equation.outputs.length === 1 ? (equation.outputs[0]?.id ?? null) : null,
    backward: equation.colour === "backward",
    folds,
    inner: open
      ? equation.nested.map(n =>
          graphOf(
            n.body,
            folded,
            equation.nested.length > 1 ? n.label : "",
            `${id}/${n.label}/`
          )
        )
      : []
  };
}
