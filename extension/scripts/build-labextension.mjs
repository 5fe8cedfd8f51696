// How does the JupyterLab plugin become a prebuilt extension?
//
// Runs the builder that `jupyter-builder build` runs, straight from node_modules, so that a build
// needs Node alone. Output: kernel/saem/labextension (see "jupyterlab" in package.json).
//
// The packages that a page shares with its extensions are asked for by the ranges in package.json,
// from the oldest JupyterLab that Saem takes; the builder would ask for those it is built with.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import fs from "node:fs";
import path from "node:path";

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const builder = path.join(
  path.dirname(require.resolve("@jupyter/builder/package.json")),
  "lib/build-labextension.js"
);
const read = (file) => JSON.parse(fs.readFileSync(path.join(here, file), "utf8"));
const shared = read("node_modules/@jupyterlab/core-meta/core.package.json");
for (const [name, range] of Object.entries(read("package.json").dependencies)) {
  if (name in shared.dependencies) shared.dependencies[name] = range;
  if (name in shared.resolutions) shared.resolutions[name] = range;
}
const core = path.join(here, "build/core.package.json");
fs.mkdirSync(path.dirname(core), { recursive: true });
fs.writeFileSync(core, JSON.stringify(shared, null, 2));
execFileSync(process.execPath, [builder, "--core-package-file", core, here], {
  stdio: "inherit",
  cwd: here
});
