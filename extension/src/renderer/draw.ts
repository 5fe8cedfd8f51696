// How does a placed graph become a picture?
//
// Draws nodes and edges as SVG. A group is laid out on its own and then stands in its parent as
// one box, so any engine draws any nesting.
// Read before: graph.ts, layout.ts. Read after: jaxpr.ts.
// Invariant: every equation in sight has a node that can take the focus (test/graph.test.ts).
import { OWN_KEYS, svg, type Child } from "./dom";
import type { Graph, GraphNode } from "./graph";
import type { LayoutEngine, Point } from "./layout";
import type { Locale } from "./locale";

const CHARACTER = 7.3;
const NOTE_CHARACTER = 6.1;
const PAD = 12;
const HEAD = 26;
const LONGEST = 34;

interface Picture {
  readonly width: number;
  readonly height: number;
  readonly content: SVGGElement;
}

/** The whole graph as one SVG, at its natural size. */
export function drawGraph(graph: Graph, engine: LayoutEngine, locale: Locale): SVGSVGElement {
  const picture = drawBody(graph, engine, locale);
  const [width, height] = [picture.width + 4, picture.height + 4];
  return svg(
    "svg",
    {
      class: "saem-graph",
      viewBox: `-2 -2 ${width} ${height}`,
      width: Math.ceil(width),
      height: Math.ceil(height),
      role: "group",
      "aria-label": locale.say("graph")
    },
    picture.content
  );
}

function drawBody(graph: Graph, engine: LayoutEngine, locale: Locale): Picture {
  const inside = new Map(
    graph.nodes.map(n => [n.id, n.inner.map(g => drawBody(g, engine, locale))])
  );
  const boxes = graph.nodes.map(node => ({ id: node.id, ...size(node, inside.get(node.id)!) }));
  const layout = engine(boxes, graph.edges);
  const edges = graph.edges.map((edge, i) => {
    const path = layout.paths[i] ?? [];
    return svg(
      "g",
      {
        class: edge.backward ? "saem-edge saem-backward" : "saem-edge",
        "data-var": edge.variable
      },
      svg("title", {}, edge.label),
      svg("path", { class: "saem-edge-hit", d: curve(path) }),
      svg("path", { class: "saem-edge-line", d: curve(path) }),
      svg("path", { class: "saem-edge-head", d: head(path) })
    );
  });
  const nodes = graph.nodes.map((node, i) => {
    const centre = layout.centres.get(node.id) ?? { x: 0, y: 0 };
    return drawNode(node, boxes[i]!, centre, inside.get(node.id)!, locale);
  });
  const content = svg("g", {}, edges, nodes);
  return { width: layout.width, height: layout.height, content };
}

function shorten(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

function size(node: GraphNode, inner: readonly Picture[]): { width: number; height: number } {
  const label = shorten(node.label).length * CHARACTER + (node.folds ? 18 : 0);
  const note = shorten(node.note).length * NOTE_CHARACTER;
  const stacked = node.kind === "equation" || node.kind === "group";
  const width = (stacked ? Math.max(label, note) : label + (note && note + 6)) + 22;
  if (node.kind === "group") {
    const body = inner.reduce((sum, p) => sum + p.width + PAD, PAD);
    const tall = Math.max(0, ...inner.map(p => p.height));
    return { width: Math.max(width, body), height: HEAD + tall + 2 * PAD };
  }
  return { width, height: node.note && node.kind === "equation" ? 40 : 26 };
}

function drawNode(
  node: GraphNode,
  box: { width: number; height: number },
  centre: Point,
  inner: readonly Picture[],
  locale: Locale
): SVGGElement {
  const { width, height } = box;
  const tone = node.backward ? " saem-backward" : "";
  const focus = node.equations.length > 0;
  const label = `${node.label} ${node.note}`.trim();
  return svg(
    "g",
    {
      class: `saem-node saem-node-${node.kind}${tone}`,
      transform: `translate(${round(centre.x - width / 2)} ${round(centre.y - height / 2)})`,
      "data-eqn": focus ? node.equations.join(" ") : null,
      "data-var": node.variable,
      "data-fold-node": node.folds ? node.equations[0] : null,
      tabindex: focus ? 0 : null,
      ...(focus ? OWN_KEYS : {}),
      // Its title names it; a group holds others that can be chosen.
      role: focus ? (node.kind === "group" ? "group" : "button") : "img",
      "aria-label": focus ? null : `${kindWord(node, locale)} ${label}`
    },
    svg("title", {}, label),
    svg("rect", { width: round(width), height: round(height), rx: corner(node, height) }),
    texts(node, width, height, locale),
    groups(inner, width)
  );
}

function kindWord(node: GraphNode, locale: Locale): string {
  return node.kind === "input" || node.kind === "constant" || node.kind === "output"
    ? locale.say(node.kind)
    : "";
}

function corner(node: GraphNode, height: number): number {
  return node.kind === "equation" || node.kind === "group" ? 6 : height / 2;
}

function texts(node: GraphNode, width: number, height: number, locale: Locale): Child[] {
  const toggle = node.folds && foldToggle(node, width, locale);
  if (node.kind === "group") {
    return [
      svg("text", { class: "saem-node-label", x: PAD, y: 18 }, shorten(node.label)),
      toggle
    ];
  }
  const x = round((width - (node.folds ? 16 : 0)) / 2);
  if (node.kind === "equation" && node.note) {
    return [
      svg("text", { class: "saem-node-label saem-mid", x, y: 17 }, shorten(node.label)),
      svg("text", { class: "saem-node-note saem-mid", x, y: 32 }, shorten(node.note)),
      toggle
    ];
  }
  return [
    svg(
      "text",
      { class: "saem-node-label saem-mid", x: width / 2, y: height / 2 + 4 },
      shorten(node.label),
      node.note && svg("tspan", { class: "saem-node-note", dx: 5 }, shorten(node.note))
    )
  ];
}

function foldToggle(node: GraphNode, width: number, locale: Locale): SVGGElement {
  const open = node.kind === "group";
  return svg(
    "g",
    {
      class: "saem-node-toggle",
      "data-fold": node.equations[0],
      transform: `translate(${round(width - 22)} 5)`
    },
    svg("title", {}, locale.say(open ? "fold" : "unfold")),
    svg("rect", { width: 16, height: 16, rx: 3 }),
    svg("path", { d: open ? "M4 8h8" : "M4 8h8M8 4v8" })
  );
}

function groups(inner: readonly Picture[], width: number): Child[] {
  const total = inner.reduce((sum, p) => sum + p.width, 0) + PAD * Math.max(0, inner.length - 1);
  let x = (width - total) / 2;
  return inner.map(picture => {
    const node = svg("g", { transform: `translate(${round(x)} ${HEAD + PAD})` }, picture.content);
    x += picture.width + PAD;
    return node;
  });
}

function round(n: number): number {
  return Math.round(n * 10) / 10;
}

function curve(points: readonly Point[]): string {
  const [first, ...rest] = points.map(p => `${round(p.x)} ${round(p.y)}`);
  return first === undefined ? "" : `M${first}C${rest.join(" ")}`;
}

/** The arrow's head, pointing the way its curve arrives. */
function head(points: readonly Point[]): string {
  const end = points.at(-1);
  const before = points.at(-2);
  if (!end || !before) {
    return "";
  }
  const length = Math.hypot(end.x - before.x, end.y - before.y) || 1;
  const [dx, dy] = [(end.x - before.x) / length, (end.y - before.y) / length];
  const corner = (side: number): string =>
    `${round(end.x - 7 * dx + side * 3 * dy)} ${round(end.y - 7 * dy - side * 3 * dx)}`;
  return `M${round(end.x)} ${round(end.y)}L${corner(1)}L${corner(-1)}z`;
}
