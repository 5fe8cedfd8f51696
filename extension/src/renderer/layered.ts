// Where do the boxes stand, where Graphviz is not at hand?
//
// A layered drawing after Sugiyama, Tagawa and Toda (1981): give every node a layer below all that
// flow into it, put bends where an edge crosses layers, order each layer by the middle of its
// neighbours, then move nodes towards their neighbours as far as the order allows.
// Read before: graph.ts. Read after: graphviz.ts (the same by another engine), draw.ts.
// Invariant: boxes never overlap, and every edge points down (test/graph.test.ts).

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

const GAP_X = 22;
const GAP_Y = 30;
const SWEEPS = 6;

interface Place {
  readonly id: string;
  readonly width: number;
  readonly height: number;
  readonly layer: number;
  x: number;
  readonly up: Place[];
  readonly down: Place[];
}

/** Lay out a graph without cycles, given in an order in which no arrow points backwards. */
export const layered: LayoutEngine = (boxes, arrows) => {
  const ranks = rank(boxes, arrows);
  const places = new Map<string, Place>();
  const layers: Place[][] = [];
  const add = (id: string, width: number, height: number, layer: number): Place => {
    const place: Place = { id, width, height, layer, x: 0, up: [], down: [] };
    (layers[layer] ??= []).push(place);
    return place;
  };
  for (const box of boxes) {
    places.set(box.id, add(box.id, box.width, box.height, ranks.get(box.id) ?? 0));
  }
  const chains = arrows.map(arrow => {
    const chain = [places.get(arrow.from)!];
    const end = places.get(arrow.to)!;
    for (let layer = chain[0]!.layer + 1; layer < end.layer; layer += 1) {
      chain.push(add("", 8, 0, layer));
    }
    chain.push(end);
    for (let i = 1; i < chain.length; i += 1) {
      chain[i - 1]!.down.push(chain[i]!);
      chain[i]!.up.push(chain[i - 1]!);
    }
    return chain;
  });
  order(layers);
  straighten(layers);
  return finish(layers, chains);
};

/** Layers from above; then nodes without inputs sink to just above their first reader. */
function rank(boxes: readonly Box[], arrows: readonly Arrow[]): Map<string, number> {
  const ranks = new Map<string, number>(boxes.map(b => [b.id, 0]));
  const into = new Map<string, string[]>();
  const out = new Map<string, string[]>();
  for (const { from, to } of arrows) {
    into.set(to, [...(into.get(to) ?? []), from]);
    out.set(from, [...(out.get(from) ?? []), to]);
  }
  for (const { id } of boxes) {
    for (const from of into.get(id) ?? []) {
      ranks.set(id, Math.max(ranks.get(id)!, ranks.get(from)! + 1));
    }
  }
  for (const { id } of boxes) {
    const readers = (out.get(id) ?? []).map(to => ranks.get(to)!);
    if (!into.has(id) && readers.length > 0) {
      ranks.set(id, Math.min(...readers) - 1);
    }
  }
  return ranks;
}

function order(layers: Place[][]): void {
  const spread = (layer: Place[]): void => layer.forEach((p, i) => (p.x = i));
  layers.forEach(spread);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wish = new Map(layer.map(p => [p, mean(down ? p.up : p.down) ?? p.x]));
      layer.sort((a, b) => wish.get(a)! - wish.get(b)!);
      spread(layer);
    }
  }
}

function mean(places: readonly Place[]): number | null {
  return places.length ? places.reduce((sum, p) => sum + p.x, 0) / places.length : null;
}

function straighten(layers: Place[][]): void {
  for (const layer of layers) {
    let x = 0;
    for (const place of layer) {
      place.x = x + place.width / 2;
      x += place.width + GAP_X;
    }
    const shift = (x - GAP_X) / 2;
    layer.forEach(p => (p.x -= shift));
  }
  for (let sweep = 0; sweep < SWEEPS * 2; sweep += 1) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wish = (p: Place): number =>
        mean(down ? p.up : p.down) ?? mean([...p.up, ...p.down]) ?? p.x;
      settle(layer, layer.map(wish));
    }
  }
}

/** Put each place as near to its wish as its order and the gaps allow (least squares, by merging
 * neighbours that would overlap into blocks that share one shift). */
function settle(layer: Place[], wishes: readonly number[]): void {
  const blocks: { sum: number; count: number }[] = [];
  const offsets: number[] = [];
  layer.forEach((place, i) => {
    const before = layer[i - 1];
    const room = before ? (before.width + place.width) / 2 + GAP_X : 0;
    offsets.push(i === 0 ? 0 : offsets[i - 1]! + room);
    let block = { sum: wishes[i]! - offsets[i]!, count: 1 };
    for (let last = blocks.at(-1); last; last = blocks.at(-1)) {
      if (last.sum / last.count <= block.sum / block.count) {
        break;
      }
      block = { sum: last.sum + block.sum, count: last.count + block.count };
      blocks.pop();
    }
    blocks.push(block);
  });
  let i = 0;
  for (const block of blocks) {
    for (let n = 0; n < block.count; n += 1, i += 1) {
      layer[i]!.x = block.sum / block.count + offsets[i]!;
    }
  }
}

function finish(layers: Place[][], chains: readonly (readonly Place[])[]): Layout {
  const all = layers.flat();
  const left = Math.min(0, ...all.map(p => p.x - p.width / 2));
  const width = Math.max(0, ...all.map(p => p.x + p.width / 2)) - left;
  const middles: number[] = [];
  let y = 0;
  for (const layer of layers) {
    const height = Math.max(0, ...layer.map(p => p.height));
    middles.push(y + height / 2);
    y += height + GAP_Y;
  }
  const at = (p: Place, side: -1 | 0 | 1): Point => ({
    x: p.x - left,
    y: middles[p.layer]! + (side * p.height) / 2
  });
  return {
    width,
    height: Math.max(0, y - GAP_Y),
    centres: new Map(all.filter(p => p.id).map(p => [p.id, at(p, 0)])),
    paths: chains.map(chain => curve(chain.map((p, i) => at(p, i === 0 ? 1 : -1))))
  };
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
