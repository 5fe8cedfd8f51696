// Does each view draw what it drew before, in both languages?
//
// A snapshot is the outline of what is drawn: elements with their classes, and texts.
// `UPDATE=1 npm test -- views` writes them anew; look at the difference before keeping it.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { put, sample } from "./page";
import type { ErrorModel, TracersModel } from "../src/schema";
import { Locale } from "../src/renderer/locale";
import { show } from "../src/renderer/view";

const KEPT = "test/snapshots";
const VIEWS = [
  "history", "jaxpr", "tracers", "steps", "keys", "error", "gates", "devices"
];

/** One line for each element or text, indented by its depth; drawings only by their number. */
function outline(node: Element, depth = 0): string[] {
  const name = node.tagName.toLowerCase();
  const head = [name, ...node.classList].join(".");
  const indent = "  ".repeat(depth);
  if (name === "svg") {
    return [`${indent}${head} (${node.querySelectorAll("*").length})`];
  }
  const lines = [`${indent}${head}`];
  for (const child of node.childNodes) {
    if (child.nodeType === 1) {
      lines.push(...outline(child as Element, depth + 1));
    } else if (child.textContent?.trim()) {
      lines.push(`${indent}  "${child.textContent.trim()}"`);
    }
  }
  return lines;
}

for (const view of VIEWS) {
  for (const language of ["en", "ko"] as const) {
    test(`${view} in ${language}`, () => {
      const root = show(sample(view), { locale: new Locale(language) });
      put(root);
      assert.equal(root.querySelector(".saem-notice:not(.saem-failed-note)"), null);
      const text = outline(root).join("\n") + "\n";
      const file = path.join(KEPT, `${view}-${language}.txt`);
      if (process.env.UPDATE || !existsSync(file)) {
        assert.ok(process.env.UPDATE, `${file} is missing`);
        mkdirSync(KEPT, { recursive: true });
        writeFileSync(file, text);
      }
      assert.equal(text, readFileSync(file, "utf8"));
    });
  }
}

test("an error that ended an X-ray is explained in the reader's language", () => {
  const seen = sample("tracers") as TracersModel;
  const explained = sample("error") as ErrorModel;
  const error = `${explained.name}: ${explained.message}`;
  const note = (model: TracersModel): Element =>
    show(model, { locale: new Locale("ko") }).querySelector(".saem-failed-note")!;
  const known = note({ ...seen, error, explained });
  assert.equal(known.querySelector(".saem-error-title")!.textContent, explained.title.ko);
  const message = known.querySelector(".saem-message")!;
  assert.equal(message.textContent, explained.message);
  assert.ok(message.closest("details:not([open])"));
  // An earlier notebook, or an error of the learner's own: the message is all there is.
  assert.equal(note({ ...seen, error: "KeyError: 1" }).querySelector("details"), null);
});

test("a cell's badge has the colours of the views", () => {
  const pairs = (text: string): [string, string][] =>
    [...text.matchAll(/(--saem-\w+): (light-dark\([^;]+\));/g)].map(m => [m[1]!, m[2]!]);
  const views = new Map(pairs(readFileSync("style/base.css", "utf8").split("\n}\n")[0]!));
  const badge = readFileSync("style/lab.css", "utf8").split(".saem-badge {\n")[1]!.split("}")[0]!;
  assert.equal(pairs(badge).length, 4);
  pairs(badge).forEach(([name, pair]) => assert.equal(pair, views.get(name), name));
});

test("an X-ray's hint can be read on the light ground of a cell", () => {
  const css = readFileSync("style/lab.css", "utf8").split("\n.saem-inlay {\n")[1]!;
  const share = Number(/var\(--saem-tone\) (\d+)%/.exec(css)![1]) / 100;
  const light = (colour: number[]): number => {
    const [red, green, blue] = colour.map(c => Math.pow((c / 255 + 0.055) / 1.055, 2.4));
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue! + 0.05;
  };
  const tones = [...css.matchAll(/--saem-tone: light-dark\(#(\w\w)(\w\w)(\w\w)/g)];
  assert.equal(tones.length, 6);
  for (const [said, ...parts] of tones) {
    const tone = parts.map(part => parseInt(part, 16));
    // Jupyter's cells have the ground #f5f5f5.
    const ground = tone.map(part => share * part + (1 - share) * 0xf5);
    assert.ok(light(ground) / light(tone) >= 4.5, said);
  }
});
