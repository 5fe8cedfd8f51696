// Which plugins does the extension bring to JupyterLab?
//
// `saem-lens:panel`, the side panel that follows the active notebook's kernel, with its commands,
// settings and badges; `saem-lens:mime`, the views of outputs.
// Read before: panel.ts, connection.ts, cells.ts, mime.ts. Read after: ../../schema/panel.json.
// Invariant: without settings, translator or a notebook the extension still starts.
import {
  ILabShell,
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { INotebookTracker } from "@jupyterlab/notebook";
import { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";
import { Follower } from "./follower";
import { lensIcon } from "./icon";
import { mimeFactory } from "./mime";
import type { Locale } from "../renderer/locale";
import { localeOf } from "./words";

const PANEL = "saem-lens:panel";

const panel: JupyterFrontEndPlugin<void> = {
  id: PANEL,
  description: "A side panel that shows what Saem traces and compiles in the active notebook.",
  autoStart: true,
  requires: [INotebookTracker],
  optional: [
    ITranslator,
    ISettingRegistry,
    ICommandPalette,
    ILayoutRestorer,
    ILabShell,
    IRenderMimeRegistry
  ],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    translator: ITranslator | null,
    registry: ISettingRegistry | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    shell: ILabShell | null,
    rendermime: IRenderMimeRegistry | null
  ): void => {
    const tongue = translator ?? nullTranslator;
    const locale = (choice: string): Locale => localeOf(tongue, choice);
    const follower = new Follower(tracker, locale("auto"), () => app.shell.activateById(widget.id));
    const widget = follower.panel;
    widget.title.icon = lensIcon;
    widget.title.caption = locale("auto").say("panel.title");
    app.shell.add(widget, "right", { rank: 560, type: "Saem lens" });
    restorer?.add(widget, widget.id);
    addCommands(app, follower, locale("auto"), palette, shell);
    rendermime?.addFactory(
      mimeFactory({ locale: () => follower.locale, visit: place => follower.visit(place) })
    );
    if (registry) {
      void registry
        .load(PANEL)
        .then(settings => {
          const apply = (): void => {
            const { language, badges, open } = settings.composite;
            follower.set(locale(String(language ?? "auto")), badges !== false, open !== false);
            widget.title.caption = follower.locale.say("panel.title");
          };
          settings.changed.connect(apply);
          apply();
        })
        .catch((error: unknown) => console.warn("saem-lens: no settings", error));
    }
    follower.start();
  }
};

function addCommands(
  app: JupyterFrontEnd,
  follower: Follower,
  locale: Locale,
  palette: ICommandPalette | null,
  shell: ILabShell | null
): void {
  const { commands } = app;
  const { panel: widget } = follower;
  const none = { type: "object", properties: {} } as const;
  commands.addCommand("saem-lens:toggle", {
    label: () => follower.locale.say("panel.toggle"),
    icon: lensIcon,
    describedBy: { args: none },
    execute: () => {
      if (widget.isVisible && shell) {
        shell.collapseRight();
      } else {
        app.shell.activateById(widget.id);
      }
    }
  });
  commands.addCommand("saem-lens:clear", {
    label: () => follower.locale.say("panel.clear"),
    describedBy: { args: none },
    isEnabled: () => follower.connection.state.name === "live",
    execute: () => follower.connection.request("clear")
  });
  commands.addCommand("saem-lens:connect", {
    label: () => follower.locale.say("panel.connect"),
    describedBy: { args: none },
    execute: () => follower.connection.greet()
  });
  for (const command of ["saem-lens:toggle", "saem-lens:clear", "saem-lens:connect"]) {
    palette?.addItem({ command, category: locale.say("panel.title") });
  }
}

export default panel;
