// Which plugins does the extension bring to JupyterLab and Notebook 7?
//
// One, `saem-lens:panel`: the side panel that follows the active notebook's or console's kernel,
// its commands (palette, context menu, launcher), status bar, toolbar button, settings and badges,
// and the views of outputs.
// Read before: panel.ts, connection.ts, cells.ts, mime.ts. Read after: ../../schema/panel.json.
// Invariant: without settings, translator or a notebook the extension still starts.
import {
  ILabShell,
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from "@jupyterlab/application";
import { ICommandPalette, showErrorMessage } from "@jupyterlab/apputils";
import { IConsoleTracker } from "@jupyterlab/console";
import { ILauncher } from "@jupyterlab/launcher";
import { INotebookTracker } from "@jupyterlab/notebook";
import { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { IStatusBar } from "@jupyterlab/statusbar";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";
import { PathExt } from "@jupyterlab/coreutils";
import type { Locale } from "../renderer/locale";
import { ask } from "./ask";
import { Follower } from "./follower";
import { lensIcon } from "./icon";
import { mimeFactory, type Surroundings } from "./mime";
import { addReview } from "./review";
import { StatusItem, ToolbarBadges } from "./status";
import { localeOf } from "./words";

const PANEL = "saem-lens:panel";
const NONE = { type: "object", properties: {} } as const;

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
    IRenderMimeRegistry,
    IConsoleTracker,
    IStatusBar,
    ILauncher
  ],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    translator: ITranslator | null,
    registry: ISettingRegistry | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    shell: ILabShell | null,
    rendermime: IRenderMimeRegistry | null,
    consoles: IConsoleTracker | null,
    statusBar: IStatusBar | null,
    launcher: ILauncher | null
  ): void => {
    const tongue = translator ?? nullTranslator;
    const locale = (choice: string): Locale => localeOf(tongue, choice);
    // In Notebook 7.4 and older the shell would close a panel that is open.
    const open = (): void =>
      widget.isVisible ? widget.activate() : app.shell.activateById(widget.id);
    const follower = new Follower(tracker, consoles, locale("auto"), open);
    const widget = follower.panel;
    widget.title.icon = lensIcon;
    widget.title.caption = locale("auto").say("panel.title");
    app.shell.add(widget, "right", { rank: 560, type: "Saem lens" });
    restorer?.add(widget, widget.id);
    const surroundings: Surroundings = {
      locale: () => follower.locale,
      visit: place => follower.visit(place),
      lesson: file => void app.commands.execute("saem-lens:lessons", { file }),
      hint: model => follower.hint(model)
    };
    const store = addSettings(registry, follower, locale, () => {
      widget.title.caption = follower.locale.say("panel.title");
    });
    addCommands(app, follower, surroundings, store, shell);
    for (const command of PALETTE) {
      palette?.addItem({ command, category: locale("auto").say("panel.title") });
    }
    launcher?.add({
      command: "saem-lens:lessons",
      category: locale("auto").say("panel.lessons"),
      rank: 1
    });
    addReview(app, () => follower.locale, palette, launcher);
    rendermime?.addFactory(mimeFactory(surroundings));
    statusBar?.registerStatusItem("saem-lens:status", {
      item: new StatusItem(follower, open),
      align: "left",
      rank: 90,
      isActive: () => follower.connection.state.name === "live",
      activeStateChanged: follower.changed
    });
    app.docRegistry.addWidgetExtension("Notebook", new ToolbarBadges(follower, open));
    follower.start();
    shell?.currentChanged.connect(() => follower.turnTo(shell.currentWidget));
  }
};

const PALETTE = [
  "saem-lens:toggle",
  "saem-lens:jaxpr",
  "saem-lens:xray",
  "saem-lens:hints",
  "saem-lens:clear",
  "saem-lens:connect",
  "saem-lens:lessons"
];

type Store = (name: string, value: boolean) => void;

function addSettings(
  registry: ISettingRegistry | null,
  follower: Follower,
  locale: (choice: string) => Locale,
  done: () => void
): { hints: () => boolean; set: Store } {
  const values = { marks: true, opens: true, hints: true };
  let set: Store = (name, value) => {
    Object.assign(values, { [name]: value });
    follower.set(follower.locale, values);
  };
  if (registry) {
    void registry
      .load(PANEL)
      .then(settings => {
        const apply = (): void => {
          const { language, badges, open, hints } = settings.composite;
          values.marks = badges !== false;
          values.opens = open !== false;
          values.hints = hints !== false;
          follower.set(locale(String(language ?? "auto")), { ...values });
          done();
        };
        set = (name, value) => void settings.set(name, value);
        settings.changed.connect(apply);
        apply();
      })
      .catch((error: unknown) => console.warn("saem-lens: no settings", error));
  }
  return { hints: () => values.hints, set: (name, value) => set(name, value) };
}

function addCommands(
  app: JupyterFrontEnd,
  follower: Follower,
  surroundings: Surroundings,
  settings: { hints: () => boolean; set: Store },
  shell: ILabShell | null
): void {
  const { commands } = app;
  const { panel: widget } = follower;
  const say = (word: Parameters<Locale["say"]>[0]) => () => follower.locale.say(word);
  /** Is a cell of code chosen, and a kernel there to ask? */
  const ready = (): boolean => {
    const { notebook } = follower;
    const code = notebook?.content.activeCell?.model.type === "code";
    return code && Boolean(notebook.sessionContext.session?.kernel);
  };
  const view = (name: "jaxpr" | "tracers") => async (): Promise<void> => {
    const { notebook } = follower;
    const made = notebook && (await ask(notebook, name, surroundings));
    if (made) {
      app.shell.add(made, "main", { mode: "split-right" });
      app.shell.activateById(made.id);
    }
  };
  commands.addCommand("saem-lens:toggle", {
    label: say("panel.toggle"),
    icon: lensIcon,
    describedBy: { args: NONE },
    execute: () => {
      if (widget.isVisible && shell) {
        shell.collapseRight();
      } else {
        app.shell.activateById(widget.id);
      }
    }
  });
  commands.addCommand("saem-lens:jaxpr", {
    label: say("panel.jaxpr"),
    icon: lensIcon,
    describedBy: { args: NONE },
    isEnabled: ready,
    execute: view("jaxpr")
  });
  commands.addCommand("saem-lens:xray", {
    label: say("panel.xray"),
    icon: lensIcon,
    describedBy: { args: NONE },
    isEnabled: ready,
    execute: view("tracers")
  });
  commands.addCommand("saem-lens:hints", {
    label: say("panel.hints"),
    describedBy: { args: NONE },
    isToggled: () => settings.hints(),
    execute: () => settings.set("hints", !settings.hints())
  });
  commands.addCommand("saem-lens:clear", {
    label: say("panel.clear"),
    describedBy: { args: NONE },
    isEnabled: () => follower.connection.state.name === "live",
    execute: () => follower.connection.request("clear")
  });
  commands.addCommand("saem-lens:connect", {
    label: say("panel.connect"),
    describedBy: { args: NONE },
    execute: () => follower.connection.greet()
  });
  commands.addCommand("saem-lens:lessons", {
    label: say("panel.lessons"),
    caption: say("panel.lessons.caption"),
    icon: lensIcon,
    describedBy: {
      args: { type: "object", properties: { file: { type: "string" } } }
    },
    execute: async args => {
      const file = typeof args.file === "string" ? args.file : "";
      const path = await lesson(app, follower, file);
      if (path === null) {
        const title = follower.locale.say("panel.lessons");
        await showErrorMessage(title, follower.locale.say("panel.lessons.none"));
      } else {
        await commands.execute("docmanager:open", { path });
      }
    }
  });
}

/** The lesson `file`, or the first, in the reader's language below the server's folder, or null. */
async function lesson(
  app: JupyterFrontEnd,
  { locale: { language }, notebook }: Follower,
  file: string
): Promise<string | null> {
  const { contents } = app.serviceManager;
  const beside = PathExt.dirname(notebook?.context.path ?? "");
  const places = [beside, "", language, "saem-lessons", `saem-lessons/${language}`, "en", "ko"];
  for (const folder of places) {
    try {
      const found = await contents.get(folder);
      const names = (found.content as { name: string; path: string; type: string }[])
        .filter(f => f.type === "notebook" && /^\d\d-/.test(f.name) && f.name.startsWith(file))
        .sort((a, b) => a.name.localeCompare(b.name));
      if (names[0]) {
        return names[0].path;
      }
    } catch {
      continue; // there is no such folder
    }
  }
  return null;
}

export default panel;
