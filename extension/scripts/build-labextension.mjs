// How does the JupyterLab plugin become a prebuilt extension?
//
// Runs the builder that `jupyter-builder build` runs, straight from node_modules, so that a build
// needs Node alone. Output: kernel/saem/labextension (see "jupyterlab" in package.json).
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import path from "node:path";

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const builder = path.join(
  path.dirname(require.resolve("@jupyter/builder/package.json")),
  "lib/build-labextension.js"
);
const core = path.join(here, "node_modules/@jupyterlab/core-meta/core.package.json");
execFileSync(process.execPath, [builder, "--core-package-file", core, here], {
  stdio: "inherit",
  cwd: here
});
