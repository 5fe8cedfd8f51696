// How do the renderer's tests run? esbuild turns test/*.test.ts into build/test, node --test runs
// them; names given on the command line choose files: `npm test -- history`.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const wanted = process.argv.slice(2);
const names = readdirSync(path.join(here, "test")).filter(
  name => name.endsWith(".test.ts") && (!wanted.length || wanted.some(w => name.includes(w)))
);
const out = path.join(here, "build/test");
rmSync(out, { recursive: true, force: true });
await build({
  entryPoints: names.map(name => path.join(here, "test", name)),
  bundle: true,
  platform: "node",
  format: "esm",
  packages: "external",
  target: "node20",
  outdir: out,
  outExtension: { ".js": ".mjs" },
  loader: { ".css": "text" },
  sourcemap: "inline",
  logLevel: "warning"
});
const files = names.map(name => path.join(out, name.replace(/\.ts$/, ".mjs")));
const result = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], {
  stdio: "inherit",
  cwd: here
});
process.exit(result.status ?? 1);
