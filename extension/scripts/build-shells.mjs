// How do the anywidget and the static page get their one file each?
//
// esbuild bundles the renderer with each shell into kernel/saem/lens/static: widget.js (ESM, with
// Graphviz), renderer.js (a classic script, small, style included) and saem.css.
import { build } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const out = path.join(here, "../kernel/saem/lens/static");
mkdirSync(out, { recursive: true });

const common = {
  bundle: true,
  minify: true,
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  absWorkingDir: here,
  loader: { ".css": "text" },
  logLevel: "warning"
};
await Promise.all([
  build({
    ...common,
    entryPoints: ["src/shells/widget.ts"],
    format: "esm",
    outfile: path.join(out, "widget.js")
  }),
  build({
    ...common,
    entryPoints: ["src/shells/static.ts"],
    format: "iife",
    outfile: path.join(out, "renderer.js")
  })
]);
copyFileSync(path.join(here, "style/saem.css"), path.join(out, "saem.css"));
