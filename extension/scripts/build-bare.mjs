// How do browser tests get a page with the widgets' manager alone? test/bare.ts and all it needs
// become build/bare.js; nothing of it is part of the product.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import path from "node:path";

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
await build({
  entryPoints: ["test/bare.ts"],
  absWorkingDir: here,
  bundle: true,
  format: "iife",
  target: "es2022",
  outfile: "build/bare.js",
  define: {
    global: "globalThis",
    "process.env": "{}",
    __webpack_public_path__: "globalThis.publicPath"
  },
  loader: Object.fromEntries(
    ["css", "svg", "woff", "woff2", "eot", "ttf"].map(end => [`.${end}`, "empty"])
  ),
  logLevel: "error"
});
