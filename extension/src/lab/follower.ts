// Which notebook does the panel follow, and what makes it look again?
//
// Joins JupyterLab's notebook tracker, the connection, the panel and the badges.
// Read before: connection.ts, panel.ts, cells.ts. Read after: index.ts.
// Invariant: kernels of notebooks that do not speak of Saem get no message from us.
import type { ISessionContext } from "@jupyterlab/apputils";
import { NotebookActions, type INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import type { Place } from "../schema";
import { badges, mentionsSaem, visit } from "./cells";
import { Connection, type State } from "./connection";
import { LensPanel } from "./panel";
import type { Locale } from "../renderer/locale";

export class Follower {
  readonly panel: LensPanel;
  readonly connection: Connection;
  private notebook: NotebookPanel | null = null;
  private marks = true;
  private opens = true;
  private again = false;

  constructor(
    private readonly tracker: INotebookTracker,
    public locale: Locale,
    private readonly open: () => void
  ) {
    this.connection = new Connection(state => this.onState(state), locale.language);
    this.panel = new LensPanel(locale, {
      visit: place => this.visit(place),
      clear: () => this.connection.request("clear"),
      connect: () => this.connection.greet(),
      load: () => void this.connection.load()
    });
  }

  /** Begin to follow. */
  start(): void {
    this.tracker.currentChanged.connect((_tracker, notebook) => this.follow(notebook));
    NotebookActions.executed.connect((_, { notebook, cell }) => {
      const { name } = this.connection.state;
      const looks = name === "absent" || name === "notInstalled" || name === "version";
      const source = cell.model.sharedModel.getSource();
      if (notebook !== this.notebook?.content || !/\bsaem\b/.test(source)) {
        return;
      }
      if (looks) {
        this.connection.greet();
      } else if (name === "connecting") {
        // The kernel may have refused before this cell ran, and the refusal be on its way.
        this.again = true;
      }
    });
    this.follow(this.tracker.currentWidget);
  }

  /** Speak, mark and open as the settings say. */
  set(locale: Locale, marks: boolean, opens: boolean): void {
    const turned = locale.language !== this.locale.language;
    this.locale = locale;
    this.marks = marks;
    this.opens = opens;
    this.connection.locale = locale.language;
    this.panel.speak(locale);
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

  private follow(notebook: NotebookPanel | null): void {
    const { notebook: old } = this;
    if (notebook === old) {
      return;
    }
    if (old && !old.isDisposed) {
      old.sessionContext.kernelChanged.disconnect(this.onKernel, this);
    }
    this.notebook = notebook;
    if (!notebook) {
      this.connection.follow(null, { name: "none" });
      return;
    }
    notebook.sessionContext.kernelChanged.connect(this.onKernel, this);
    this.connection.follow(null, { name: "connecting" });
    void Promise.all([notebook.context.ready, notebook.sessionContext.ready])
      .then(() => this.onKernel(notebook.sessionContext))
      .catch(() => this.onKernel(notebook.sessionContext));
  }

  private onKernel(context: ISessionContext): void {
    const { notebook } = this;
    if (!notebook || notebook.isDisposed || notebook.sessionContext !== context) {
      return;
    }
    const kernel = context.session?.kernel ?? null;
    if (!kernel) {
      this.connection.follow(null, { name: "noKernel" });
      return;
    }
    void kernel.info
      .then(info => {
        if (notebook !== this.notebook || context.session?.kernel !== kernel) {
          return;
        }
        if (info.language_info.name !== "python") {
          this.connection.follow(null, { name: "language" });
        } else {
          this.connection.follow(kernel, undefined, mentionsSaem(notebook));
        }
      })
      .catch(() => this.connection.follow(null, { name: "dead" }));
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
    this.panel.display(state, notebook?.title.label ?? "");
    if (state.name === "live" && this.opens) {
      // Once: a reader who closes the panel wants it closed.
      this.opens = false;
      this.open();
    }
    if (notebook && !notebook.isDisposed) {
      const history = this.marks && state.name === "live" ? state.history : null;
      badges(notebook, history, this.locale, key => {
        this.open();
        this.panel.reveal(key);
      });
    }
  }
}
