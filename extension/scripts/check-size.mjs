// Is every line short enough to be read? At most 100 characters.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const generated = path.join(here, "src", "schema.ts");
let bad = 0;
for (const room of ["src", "style", "test", "scripts"]) {
  for (const name of readdirSync(path.join(here, room), { recursive: true })) {
    const file = path.join(here, room, name);
    if (!/\.(ts|mjs|css)$/.test(name) || file === generated) {
      continue;
    }
    const lines = readFileSync(file, "utf8").split("\n");
    for (const [at, line] of lines.entries()) {
      if (line.length > 100) {
        console.error(`${room}/${name}:${at + 1}: ${line.length} characters, at most 100`);
        bad += 1;
      }
    }
  }
}
process.exit(bad ? 1 : 0);
