// Which notebook or console does the panel follow, and what makes it look again?
//
// Joins JupyterLab's trackers, the connection, the panel, badges and inlay hints.
// Read before: connection.ts, panel.ts, cells.ts, hints.ts. Read after: index.ts.
// Invariant: kernels of notebooks that do not speak of Saem get no message from us.
import type { ISessionContext } from "@jupyterlab/apputils";
import type { ConsolePanel, IConsoleTracker } from "@jupyterlab/console";
import { NotebookActions, type INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { Signal, type ISignal } from "@lumino/signaling";
import type { Widget } from "@lumino/widgets";
import type { Locale } from "../renderer/locale";
import type { Place, Progress, TracersModel } from "../schema";
import { badges, running, visit } from "./cells";
import { Connection, type State } from "./connection";
import { hideHints, showHints } from "./hints";
import { LensPanel } from "./panel";
import { ofConsole, ofNotebook, type Subject } from "./subject";

export interface Settings {
  readonly marks: boolean;
  readonly opens: boolean;
  readonly hints: boolean;
}

/** How wide a notebook is, in CSS pixels, beside which the panel may open by itself. */
const ROOM = 720;

export class Follower {
  readonly panel: LensPanel;
  readonly connection: Connection;
  private subject: Subject | null = null;
  private settings: Settings = { marks: true, opens: true, hints: true };
  private again = false;
  private readonly heard = new WeakSet<ConsolePanel>();
  private readonly signal = new Signal<this, void>(this);

  constructor(
    private readonly tracker: INotebookTracker,
    private readonly consoles: IConsoleTracker | null,
    public locale: Locale,
    private readonly open: () => void
  ) {
    this.connection = new Connection(
      state => this.onState(state),
      locale.language,
      progress => this.onProgress(progress)
    );
    this.panel = new LensPanel(locale, {
      visit: place => this.visit(place),
      clear: () => this.connection.request("clear"),
      connect: () => this.connection.greet(),
      load: () => void this.connection.load(),
      insert: code => this.insert(code)
    });
  }

  /** The state or the progress of the connection changed. */
  get changed(): ISignal<this, void> {
    return this.signal;
  }

  /** The notebook that is followed, if it is one. */
  get notebook(): NotebookPanel | null {
    return this.subject?.notebook ?? null;
  }

  /** Begin to follow. */
  start(): void {
    this.tracker.currentChanged.connect((_tracker, notebook) =>
      this.follow(notebook && ofNotebook(notebook))
    );
    NotebookActions.executed.connect((_, { notebook, cell }) => {
      if (notebook === this.notebook?.content && this.subject?.speaks(cell.model)) {
        this.ran();
      }
    });
    this.consoles?.currentChanged.connect((_tracker, console) =>
      console ? this.followConsole(console) : this.followNotebook()
    );
    this.followNotebook();
  }

  /** The reader turned to a widget: back from a console to the notebook before, for example. */
  turnTo(widget: Widget | null): void {
    if (widget !== null && widget === this.tracker.currentWidget) {
      this.followNotebook();
    } else if (widget !== null && widget === this.consoles?.currentWidget) {
      this.followConsole(this.consoles.currentWidget);
    }
  }

  private followConsole(panel: ConsolePanel): void {
    const subject = ofConsole(panel);
    if (!this.heard.has(panel)) {
      this.heard.add(panel);
      panel.console.executed.connect(() => {
        if (this.subject?.widget === panel && subject.mentions()) {
          this.ran();
        }
      });
    }
    this.follow(subject);
  }

  private followNotebook(): void {
    const { currentWidget } = this.tracker;
    this.follow(currentWidget && ofNotebook(currentWidget));
  }

  /** Code that mentions Saem ran: the lens may be there now. */
  private ran(): void {
    const { name } = this.connection.state;
    if (name === "absent" || name === "notInstalled" || name === "version") {
      this.connection.greet();
    } else if (name === "connecting") {
      // The kernel may have refused before this cell ran, and the refusal be on its way.
      this.again = true;
    }
  }

  /** Speak, mark and open as the settings say. */
  set(locale: Locale, settings: Settings): void {
    const turned = locale.language !== this.locale.language;
    this.locale = locale;
    this.settings = { ...settings, opens: settings.opens && this.settings.opens };
    this.connection.locale = locale.language;
    this.panel.speak(locale);
    hideHints(!settings.hints);
    this.onState(this.connection.state);
    if (turned && this.connection.state.name === "live") {
      this.connection.greet();
    }
  }

  /** Go to a place in the notebook that is followed. */
  visit(place: Place): void {
    if (this.notebook) {
      void visit(this.notebook, place);
    }
  }

  /** Put the hints of an X-ray into the cells of the notebook that is followed. */
  hint(model: TracersModel): void {
    const { notebook } = this;
    if (notebook && !notebook.isDisposed) {
      showHints(notebook, model, this.locale);
    }
  }

  /** Insert a cell with `code` below the active one. */
  private insert(code: string): void {
    const { notebook } = this;
    if (notebook) {
      NotebookActions.insertBelow(notebook.content);
      notebook.content.activeCell?.model.sharedModel.setSource(code);
      notebook.content.mode = "edit";
      notebook.activate();
    }
  }

  private follow(subject: Subject | null): void {
    const { subject: old } = this;
    if (subject?.widget === old?.widget) {
      return;
    }
    if (old && !old.widget.isDisposed) {
      old.context.kernelChanged.disconnect(this.onKernel, this);
    }
    this.subject = subject;
    if (!subject) {
      this.connection.follow(null, { name: "none" });
      return;
    }
    subject.context.kernelChanged.connect(this.onKernel, this);
    this.connection.follow(null, { name: "connecting" });
    void subject.ready
      .then(() => this.onKernel(subject.context))
      .catch(() => this.onKernel(subject.context));
  }

  private onKernel(context: ISessionContext): void {
    const { subject } = this;
    if (!subject || subject.widget.isDisposed || subject.context !== context) {
      return;
    }
    const kernel = context.session?.kernel ?? null;
    if (!kernel) {
      this.connection.follow(null, { name: "noKernel" });
      return;
    }
    void kernel.info
      .then(info => {
        if (subject !== this.subject || context.session?.kernel !== kernel) {
          return;
        }
        if (info.language_info.name !== "python") {
          this.connection.follow(null, { name: "language" });
        } else {
          this.connection.follow(kernel, undefined, subject.mentions());
        }
      })
      .catch(() => this.connection.follow(null, { name: "dead" }));
  }

  private onProgress(progress: Progress | null): void {
    this.panel.work(progress);
    if (this.notebook && !this.notebook.isDisposed) {
      running(this.notebook, progress, this.locale);
    }
    this.signal.emit();
  }

  private onState(state: State): void {
    const { notebook } = this;
    if (this.again && state.name !== "connecting") {
      this.again = false;
      if (state.name === "absent") {
        this.connection.greet();
        return;
      }
    }
    this.panel.display(state, this.subject?.title() ?? "", notebook !== null);
    if (state.name === "live" && this.settings.opens) {
      // Once: a reader who closes the panel wants it closed.
      this.settings = { ...this.settings, opens: false };
      // In a narrow window, or at 200% zoom, it would leave the notebook no room.
      if ((notebook?.node.clientWidth || document.body.clientWidth) >= ROOM) {
        this.panel.leaveFocus();
        this.open();
      }
    }
    if (notebook && !notebook.isDisposed) {
      const history = this.settings.marks && state.name === "live" ? state.history : null;
      badges(notebook, history, this.locale, key => {
        this.open();
        this.panel.reveal(key);
      });
    }
    this.signal.emit();
  }
}
