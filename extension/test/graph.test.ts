// Do boxes stand apart and arrows point down, whichever engine places them?
import assert from "node:assert/strict";
import { test } from "node:test";
import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { JAXPR } from "./page";
import { drawGraph } from "../src/renderer/draw";
import { graphOf } from "../src/renderer/graph";
import { graphvizEngine } from "../src/renderer/graphviz";
import { dagreEngine, type Arrow, type Box, type LayoutEngine } from "../src/renderer/layout";
import { Locale } from "../src/renderer/locale";

/** A graph without cycles, from a fixed recipe: node i reads two earlier nodes. */
function recipe(size: number): { boxes: Box[]; arrows: Arrow[] } {
  const boxes = Array.from({ length: size }, (_, i) => ({
    id: `b${i}`,
    width: 30 + ((i * 37) % 90),
    height: 26 + ((i * 13) % 30)
  }));
  const arrows = boxes.slice(2).flatMap((box, i) => [
    { from: `b${(i * 7) % (i + 2)}`, to: box.id },
    { from: `b${i + 1}`, to: box.id }
  ]);
  return { boxes, arrows };
}

const engines: [string, LayoutEngine][] = [
  ["dagreEngine", dagreEngine],
  ["graphviz", graphvizEngine(await Graphviz.load())]
];

for (const [name, engine] of engines) {
  test(`${name}: boxes never overlap and stay inside, arrows end on their boxes`, () => {
    for (const size of [0, 1, 2, 5, 24]) {
      const { boxes, arrows } = recipe(size);
      const { width, height, centres, paths } = engine(boxes, arrows);
      const placed = boxes.map(b => ({ ...b, ...centres.get(b.id)! }));
      for (const [i, a] of placed.entries()) {
        assert.ok(a.x - a.width / 2 > -1 && a.x + a.width / 2 < width + 1, `${a.id} inside`);
        assert.ok(a.y - a.height / 2 > -1 && a.y + a.height / 2 < height + 1, `${a.id} inside`);
        for (const b of placed.slice(i + 1)) {
          const apart =
            Math.abs(a.x - b.x) > (a.width + b.width) / 2 ||
            Math.abs(a.y - b.y) > (a.height + b.height) / 2;
          assert.ok(apart, `${a.id} and ${b.id} overlap`);
        }
      }
      arrows.forEach((arrow, i) => {
        const [from, to] = [arrow.from, arrow.to].map(id => placed.find(b => b.id === id)!);
        const [first, last] = [paths[i]![0]!, paths[i]!.at(-1)!];
        assert.ok(from!.y < to!.y, "downwards");
        assert.ok(Math.abs(first.y - (from!.y + from!.height / 2)) < 2, "leaves below");
        assert.ok(Math.abs(last.y - (to!.y - to!.height / 2)) < 2, "enters above");
        assert.equal(paths[i]!.length % 3, 1, "cubic curves");
      });
    }
  });
}

test("every equation in sight has a node, and every edge joins two nodes", () => {
  const open = graphOf(JAXPR.body, new Set());
  const inner = open.nodes.find(n => n.kind === "group")!.inner[0]!;
  assert.equal(inner.nodes.filter(n => n.kind === "equation").length, 8);
  for (const graph of [open, inner]) {
    const ids = new Set(graph.nodes.map(n => n.id));
    assert.ok(graph.edges.every(e => ids.has(e.from) && ids.has(e.to)));
  }
  // dot_general reads b and a; tanh reads d: known from the sample's text.
  assert.equal(inner.edges.filter(e => e.to.endsWith("e0.0.0")).length, 2);
  const folded = graphOf(JAXPR.body, new Set(["e0"]));
  assert.equal(folded.nodes.find(n => n.folds)!.equations.length, 9);
});

test("both engines draw the same nodes", () => {
  const graph = graphOf(JAXPR.body, new Set());
  const drawn = engines.map(([, engine]) =>
    [...drawGraph(graph, engine, new Locale("en")).querySelectorAll("g.saem-node")].map(n =>
      n.querySelector("title")?.textContent
    )
  );
  assert.deepEqual(drawn[0], drawn[1]);
  assert.equal(drawn[0]!.length, 18);
});
