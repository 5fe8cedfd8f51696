// Where do the boxes stand, where Graphviz is at hand?
//
// Writes the graph as DOT, lets Graphviz (WebAssembly, on this page, loaded when first asked for)
// place it, and reads positions back as JSON. Its SVG is not used, so nothing needs sanitising.
// Read before: layout.ts. Read after: draw.ts.
// Invariant: only numbers go into the DOT; labels never do (test/graph.test.ts).
import type { Graphviz } from "@hpcc-js/wasm-graphviz";
import type { Layout, LayoutEngine, Point } from "./layout";

interface Placed {
  bb: string;
  objects?: { name: string; pos: string }[];
  edges?: { tail: number; head: number; pos: string; id: string }[];
}

/** An engine that uses a loaded Graphviz. */
export function graphvizEngine(graphviz: Pick<Graphviz, "layout">): LayoutEngine {
  return (boxes, arrows) => {
    if (boxes.length === 0) {
      return { width: 0, height: 0, centres: new Map(), paths: [] };
    }
    const number = new Map(boxes.map((box, i) => [box.id, i]));
    const inch = (points: number): string => (points / 72).toFixed(4);
    const dot = [
      "digraph {",
      "  nodesep=0.3; ranksep=0.38; pad=0;",
      '  node [shape=box, fixedsize=true, label=""];',
      "  edge [arrowhead=none, tailport=s, headport=n];",
      ...boxes.map((b, i) => `  n${i} [width=${inch(b.width)}, height=${inch(b.height)}];`),
      ...arrows.map(
        (a, i) => `  n${number.get(a.from)} -> n${number.get(a.to)} [id="${i}"];`
      ),
      "}"
    ].join("\n");
    return read(JSON.parse(graphviz.layout(dot, "json", "dot")) as Placed, boxes, arrows.length);
  };
}

function read(placed: Placed, boxes: readonly { id: string }[], arrows: number): Layout {
  const [, , width = 0, height = 0] = placed.bb.split(",").map(Number);
  const point = (text: string): Point => {
    const [x = 0, y = 0] = text.split(",").map(Number);
    return { x, y: height - y };
  };
  const centres = new Map<string, Point>();
  for (const object of placed.objects ?? []) {
    const box = boxes[Number(object.name.slice(1))];
    if (box) {
      centres.set(box.id, point(object.pos));
    }
  }
  const paths: Point[][] = Array.from({ length: arrows }, () => []);
  for (const edge of placed.edges ?? []) {
    const ends = edge.pos.split(" ").filter(p => !/^[se],/.test(p));
    paths[Number(edge.id)] = ends.map(point);
  }
  return { width, height, centres, paths };
}
