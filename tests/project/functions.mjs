// How long is every function in these TypeScript files?
// Called by budget.py: node functions.mjs TYPESCRIPT_PACKAGE FILE...
// Prints [[file, line, name, lines], ...].
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [, , compiler, ...files] = process.argv;
const ts = createRequire(import.meta.url)(compiler);
const found = [];

for (const file of files) {
  const text = readFileSync(file, "utf8");
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lineAt = (position) => source.getLineAndCharacterOfPosition(position).line + 1;
  const visit = (node) => {
    if (ts.isFunctionLike(node) && node.body) {
      const first = lineAt(node.getStart(source));
      const name = node.name ? node.name.getText(source) : "a function";
      found.push([file, first, name, lineAt(node.end) - first + 1]);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}
console.log(JSON.stringify(found));
