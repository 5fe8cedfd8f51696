// How does the panel know what a kernel does?
//
// A connection follows one kernel at a time over a comm (target `saem.lens`): it greets, takes the
// snapshot, then adds each record. Whatever may be wrong (no lens in the kernel, another version,
// a restart, a death) is a state with a name, which the panel shows.
// Read before: ../schema.ts, ../renderer/model.ts. Read after: panel.ts.
// Invariant: what an earlier kernel or comm still sends is ignored (test/connection.test.ts).
import type { Kernel, KernelMessage as Wire } from "@jupyterlab/services";
import { receive } from "../renderer/model";
import {
  COMM_TARGET,
  VERSION,
  type Environment,
  type HistoryModel,
  type KernelMessage,
  type PanelMessage,
  type Progress,
  type Text
} from "../schema";

/** Load the lens and bind no name in the learner's namespace; why it failed, null if it did not. */
export async function loadLens(kernel: Kernel.IKernelConnection): Promise<string | null> {
  const code = "get_ipython().extension_manager.load_extension('saem.lens')";
  const reply = await kernel.requestExecute({ code, silent: true, store_history: false }).done;
  if (reply?.content.status !== "error") {
    return null;
  }
  const { ename, evalue } = reply.content as Wire.IReplyErrorContent;
  return `${ename}: ${evalue}`;
}

const CLIENT = "saem-lens:client";

/** The page's name, the same when it is loaded again; "" where nothing can be stored. */
export function clientOf(): string {
  try {
    const name = sessionStorage.getItem(CLIENT) ?? String(Math.random());
    // A tab that is duplicated copies what is stored: the name is there only between two loads.
    sessionStorage.removeItem(CLIENT);
    addEventListener("pagehide", () => sessionStorage.setItem(CLIENT, name));
    return name;
  } catch {
    return "";
  }
}

export type State =
  | { readonly name: "none" | "noKernel" | "language" | "connecting" | "restarting" }
  | { readonly name: "dead" | "absent" }
  | { readonly name: "version"; readonly got: number; readonly message: Text | null }
  | { readonly name: "notInstalled"; readonly why: string }
  | {
      readonly name: "live";
      readonly environment: Environment | null;
      readonly history: HistoryModel;
    };

export class Connection {
  state: State = { name: "none" };
  /** What has been running for a while. */
  progress: Progress | null = null;
  private kernel: Kernel.IKernelConnection | null = null;
  private comm: Kernel.IComm | null = null;
  private environment: Environment | null = null;
  private readonly client = clientOf();

  constructor(
    private readonly changed: (state: State) => void,
    public locale: string,
    private readonly working: (progress: Progress | null) => void = () => {}
  ) {}

  /** Follow `kernel`, or wait in `state`; `greet` says whether to ask it for the lens at once. */
  follow(
    kernel: Kernel.IKernelConnection | null,
    state: State = { name: "noKernel" },
    greet = true
  ): void {
    if (kernel === this.kernel && kernel !== null) {
      return;
    }
    this.leave();
    this.kernel = kernel;
    if (kernel === null) {
      this.set(state);
      return;
    }
    kernel.statusChanged.connect(this.onStatus, this);
    if (greet) {
      this.greet();
    } else {
      this.set({ name: "absent" });
    }
  }

  /** Ask the kernel for the lens (again). */
  greet(): void {
    const { kernel } = this;
    if (kernel === null || kernel.isDisposed || kernel.status === "dead") {
      return;
    }
    this.drop(true);
    if (this.state.name !== "live") {
      this.set({ name: "connecting" });
    }
    const comm = kernel.createComm(COMM_TARGET);
    this.comm = comm;
    comm.onMsg = message => {
      if (this.comm === comm) {
        this.onMessage(message);
      }
    };
    comm.onClose = () => {
      if (this.comm === comm) {
        this.comm = null;
        if (this.state.name === "connecting" || this.state.name === "live") {
          this.set({ name: "absent" });
        }
      }
    };
    const { locale, client } = this;
    const greeting: PanelMessage = { type: "hello", version: VERSION, locale, client };
    comm.open(greeting as never);
  }

  /** Ask for everything so far, or have it forgotten. */
  request(what: "snapshot" | "clear"): void {
    const message: PanelMessage = { type: "request", what };
    if (this.comm && !this.comm.isDisposed) {
      this.comm.send(message as never);
    }
  }

  /** Load the lens in the kernel, then greet it. */
  async load(): Promise<void> {
    const { kernel } = this;
    if (kernel === null) {
      return;
    }
    this.set({ name: "connecting" });
    const why = await loadLens(kernel);
    if (kernel !== this.kernel) {
      return;
    }
    if (why !== null) {
      this.set({ name: "notInstalled", why });
      return;
    }
    this.greet();
  }

  dispose(): void {
    this.leave();
  }

  private leave(): void {
    this.kernel?.statusChanged.disconnect(this.onStatus, this);
    this.drop(true);
    this.kernel = null;
    this.environment = null;
  }

  private drop(close: boolean): void {
    const { comm, kernel } = this;
    this.comm = null;
    const open = comm && !comm.isDisposed && kernel && !kernel.isDisposed;
    if (close && open && kernel.status !== "dead") {
      comm.close();
    }
  }

  private onStatus(_kernel: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (status === "restarting" || status === "autorestarting") {
      this.drop(false);
      this.set({ name: "restarting" });
    } else if (status === "dead") {
      this.drop(false);
      this.set({ name: "dead" });
    } else if (this.state.name === "restarting" && (status === "idle" || status === "busy")) {
      // A new process: nothing is loaded in it until a cell does so.
      this.set({ name: "absent" });
    }
  }

  private onMessage(wire: Wire.ICommMsgMsg): void {
    const message = wire.content.data as unknown as KernelMessage;
    switch (message.type) {
      case "hello":
        this.environment = message.environment;
        if (message.version !== VERSION) {
          this.drop(true);
          this.set({ name: "version", got: message.version, message: null });
        }
        break;
      case "snapshot":
        if (message.history.version !== VERSION) {
          this.drop(true);
          this.set({ name: "version", got: message.history.version, message: null });
          break;
        }
        this.set({ name: "live", environment: this.environment, history: message.history });
        break;
      case "append":
        if (this.state.name === "live") {
          this.set({ ...this.state, history: receive(this.state.history, message) });
        }
        break;
      case "progress":
        this.work(message.activity === "idle" ? null : message);
        break;
      case "error":
        if (message.tag === "version") {
          this.drop(true);
          this.set({ name: "version", got: 0, message: message.message });
        } else {
          console.warn(`saem-lens: ${message.message.en}`);
        }
        break;
      default:
        console.warn("saem-lens: a message of no known type was dropped", message);
    }
  }

  private work(progress: Progress | null): void {
    this.progress = progress;
    this.working(progress);
  }

  private set(state: State): void {
    this.state = state;
    if (state.name !== "live" && this.progress) {
      this.work(null);
    }
    this.changed(state);
  }
}
