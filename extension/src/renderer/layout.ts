// Where do the boxes of a graph stand?
//
// A layout engine takes boxes and arrows and gives places. In JupyterLab it is Graphviz
// (graphviz.ts); in pages and widgets, which carry all they need, it is dagre, a small library for
// layered drawings.
// Read before: graph.ts. Read after: graphviz.ts (the same by Graphviz), draw.ts.
// Invariant: boxes never overlap, and every edge points down (test/graph.test.ts).
import { Graph, layout } from "@dagrejs/dagre";

export interface Box {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}

export interface Arrow {
  readonly from: string;
  readonly to: string;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Positions are centres; a path starts at its tail and is the control points of cubic curves. */
export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly centres: ReadonlyMap<string, Point>;
  readonly paths: readonly (readonly Point[])[];
}

export type LayoutEngine = (boxes: readonly Box[], arrows: readonly Arrow[]) => Layout;

/** Lay out a graph without cycles by dagre. */
export const dagreEngine: LayoutEngine = (boxes, arrows) => {
  if (boxes.length === 0) {
    return { width: 0, height: 0, centres: new Map(), paths: [] };
  }
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 30, edgesep: 10 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of boxes) {
    graph.setNode(id, { width, height });
  }
  arrows.forEach(({ from, to }, i) => graph.setEdge(from, to, {}, String(i)));
  layout(graph);
  const heights = new Map(boxes.map(b => [b.id, b.height]));
  const centres = new Map(boxes.map(({ id }) => [id, at(graph.node(id) as Point)]));
  const paths = arrows.map(({ from, to }, i) => {
    const { points = [] } = graph.edge(from, to, String(i)) as { points?: Point[] };
    const [start, end] = [centres.get(from)!, centres.get(to)!];
    return curve([
      { x: start.x, y: start.y + heights.get(from)! / 2 },
      ...points.slice(1, -1).map(at),
      { x: end.x, y: end.y - heights.get(to)! / 2 }
    ]);
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { width, height, centres, paths };
};

function at({ x, y }: Point): Point {
  return { x, y };
}

/** Control points of curves that leave and enter each point straight down. */
function curve(points: readonly Point[]): Point[] {
  const path: Point[] = [];
  points.forEach((to, i) => {
    const from = points[i - 1];
    if (from) {
      const half = (to.y - from.y) / 2;
      path.push({ x: from.x, y: from.y + half }, { x: to.x, y: to.y - half });
    }
    path.push(to);
  });
  return path;
}
