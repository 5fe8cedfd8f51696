// How do the anywidget and the static page get their one file each?
//
// esbuild bundles the renderer with each shell into kernel/saem/lens/static: widget.js (ESM),
// renderer.js (a classic script, style included) and saem.css. Both scripts are saved in every
// notebook that shows a view, so they are kept small: Graphviz is JupyterLab's alone.
import { build } from "esbuild";
import { mkdirSync, writeFileSync } from "node:fs";
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
  logLevel: "warning"
};
const style = await build({
  ...common,
  entryPoints: ["style/saem.css"],
  write: false
});
const css = style.outputFiles[0].text;
writeFileSync(path.join(out, "saem.css"), css);
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
    define: { SAEM_STYLE: JSON.stringify(css) },
    outfile: path.join(out, "renderer.js")
  })
]);
