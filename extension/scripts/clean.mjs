// Removes what the builds write.
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
for (const name of ["lib", "build", "../kernel/saem/labextension"]) {
  rmSync(path.join(here, name), { recursive: true, force: true });
}
for (const name of ["widget.js", "renderer.js", "saem.css"]) {
  rmSync(path.join(here, "../kernel/saem/lens/static", name), { force: true });
}
