// How does a translator come from JupyterLab to the review page?
//
// Where Jupyter's server runs in a clone with `saem.l10n.jupyter`, the command `saem-lens:review`
// stands in the palette and the launcher; it opens the page in a browser tab of its own.
// Read before: index.ts. Read after: kernel/saem/l10n/jupyter.py.
// Invariant: on a server without the page neither shows the command (test_lab_review.py).
import type { JupyterFrontEnd } from "@jupyterlab/application";
import type { ICommandPalette } from "@jupyterlab/apputils";
import { PageConfig } from "@jupyterlab/coreutils";
import type { ILauncher } from "@jupyterlab/launcher";
import type { Locale } from "../renderer/locale";
import { lensIcon } from "./icon";

const COMMAND = "saem-lens:review";

/** Add the command, if this server has the page. */
export function addReview(
  app: JupyterFrontEnd,
  locale: () => Locale,
  palette: ICommandPalette | null,
  launcher: ILauncher | null
): void {
  if (PageConfig.getOption("saemReview") !== "true") {
    return;
  }
  const page = `${app.serviceManager.serverSettings.baseUrl}saem/review/`;
  app.commands.addCommand(COMMAND, {
    label: () => locale().say("panel.review"),
    caption: () => locale().say("panel.review.caption"),
    icon: lensIcon,
    describedBy: { args: { type: "object", properties: {} } },
    execute: () => window.open(`${page}?say=${locale().language}`, "_blank", "noopener")
  });
  palette?.addItem({ command: COMMAND, category: locale().say("panel.title") });
  launcher?.add({ command: COMMAND, category: locale().say("panel.lessons"), rank: 2 });
}
