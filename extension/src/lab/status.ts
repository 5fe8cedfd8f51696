// How many compiles were there, at a glance?
//
// In the status bar, and as a badge in the toolbar of the notebook that is followed. What runs
// long is said in the status bar, and by the badge's title.
// Read before: follower.ts. Read after: index.ts.
// Invariant: what is shown is of the notebook that is followed, and of no other.
import type { DocumentRegistry } from "@jupyterlab/docregistry";
import type { INotebookModel, NotebookPanel } from "@jupyterlab/notebook";
import { DisposableDelegate, type IDisposable } from "@lumino/disposable";
import { Widget } from "@lumino/widgets";
import { directed, el } from "../renderer/dom";
import type { Follower } from "./follower";
import { lensIcon } from "./icon";
import { total } from "./panel";

function summary(follower: Follower): { text: string; compiles: number } | null {
  const { locale, connection } = follower;
  const { state, progress } = connection;
  if (state.name !== "live") {
    return null;
  }
  const { compiles, seconds } = total(state.history);
  const text =
    progress && progress.activity !== "idle"
      ? locale.say(`progress.${progress.activity}`, { name: progress.function })
      : locale.say("panel.status", {
          compiles: locale.count(compiles),
          seconds: locale.seconds(seconds)
        });
  return { text: text.replaceAll("`", ""), compiles };
}

/** The item of the status bar; a click opens the panel. */
export class StatusItem extends Widget {
  constructor(
    private readonly follower: Follower,
    private readonly open: () => void
  ) {
    super();
    this.addClass("saem-status");
    follower.changed.connect(this.draw, this);
    this.draw();
  }

  private draw(): void {
    const found = summary(this.follower);
    this.node.replaceChildren(
      ...(found
        ? [
            el(
              "button",
              {
                type: "button",
                class: "saem-status-button",
                title: this.follower.locale.say("panel.toggle"),
                onclick: () => this.open()
              },
              found.text
            )
          ]
        : [])
    );
  }
}

/** Puts a button with the number of compiles into each notebook's toolbar. */
export class ToolbarBadges
  implements DocumentRegistry.IWidgetExtension<NotebookPanel, INotebookModel>
{
  constructor(
    private readonly follower: Follower,
    private readonly open: () => void
  ) {}

  createNew(panel: NotebookPanel): IDisposable {
    const count = el("span", { class: "saem-toolbar-count" });
    const badge = el(
      "button",
      { type: "button", class: "saem-toolbar-button", onclick: () => this.open() },
      lensIcon.element({ tag: "span", height: "16px", width: "16px" }),
      count
    );
    const button = new Widget();
    button.addClass("saem-toolbar");
    button.node.append(badge);
    const draw = (): void => {
      const mine = this.follower.notebook === panel ? summary(this.follower) : null;
      count.textContent = mine && mine.compiles > 0 ? String(mine.compiles) : "";
      const title = this.follower.locale.say("panel.title");
      badge.title = directed(mine ? `${title}: ${mine.text}` : title);
      badge.setAttribute("aria-label", badge.title);
    };
    this.follower.changed.connect(draw);
    panel.toolbar.insertItem(11, "saemLens", button);
    draw();
    return new DisposableDelegate(() => {
      this.follower.changed.disconnect(draw);
      button.dispose();
    });
  }
}
