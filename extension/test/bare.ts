// A page with nothing of JupyterLab's but the widgets' manager, as Colab and VS Code have one.
//
// `bare.run(code)` runs code in a kernel and appends what it displays: widgets by the manager, HTML
// in a frame of its own that may run scripts and knows nothing of the page.
// Read before: ../src/shells/widget.ts. Read after: tests/browser/test_bare.py, which drives it.
import { KernelManager, ServerConnection, type Kernel } from "@jupyterlab/services";
import * as base from "@jupyter-widgets/base";
import { HTMLManager } from "@jupyter-widgets/html-manager";

type Module = Record<string, unknown>;

/** Load anywidget's AMD module, the one that is served to classic front ends. */
async function anywidget(url: string): Promise<Module> {
  const text = await (await fetch(url)).text();
  let made: Module = {};
  const define = (names: string[], factory: (...modules: unknown[]) => Module): void => {
    made = factory(...names.map(name => (name === "@jupyter-widgets/base" ? base : undefined)));
  };
  new Function("define", text)(Object.assign(define, { amd: true }));
  return made;
}

class Manager extends HTMLManager {
  constructor(
    private readonly kernel: Kernel.IKernelConnection,
    url: string
  ) {
    const loaded = anywidget(url);
    super({
      loader: name => {
        if (name !== "anywidget") {
          throw new Error(`this page has no ${name}`);
        }
        return loaded;
      }
    });
    kernel.registerCommTarget(this.comm_target_name, async (comm, message) => {
      await this.handle_comm_open(new base.shims.services.Comm(comm), message);
    });
  }

  override async _create_comm(target: string, id: string, data?: unknown): Promise<unknown> {
    const comm = this.kernel.createComm(target, id);
    comm.open(data as never);
    return new base.shims.services.Comm(comm);
  }
}

let kernel: Kernel.IKernelConnection;
let manager: Manager;

async function start(address: string, token: string, module: string): Promise<void> {
  const serverSettings = ServerConnection.makeSettings({
    baseUrl: address,
    wsUrl: address.replace("http", "ws"),
    token,
    appendToken: true
  });
  const kernels = new KernelManager({ serverSettings });
  await kernels.ready;
  kernel = await kernels.startNew({ name: "python3" });
  manager = new Manager(kernel, module);
}

const WIDGET = "application/vnd.jupyter.widget-view+json";

interface Bundle {
  readonly [mime: string]: unknown;
}

async function put(data: Bundle): Promise<void> {
  const home = document.createElement("div");
  home.className = "output";
  document.body.append(home);
  const widget = data[WIDGET] as { model_id: string } | undefined;
  if (widget) {
    const model = await manager.get_model(widget.model_id);
    await manager.display_view(manager.create_view(model) as never, home);
    return;
  }
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.style.cssText = "width:100%;height:640px;border:0";
  frame.srcdoc = String(data["text/html"] ?? "");
  home.append(frame);
}

/** Run code; returns what it displayed as text, errors included. */
async function run(code: string): Promise<string[]> {
  const said: string[] = [];
  const shown: Promise<void>[] = [];
  const future = kernel.requestExecute({ code });
  future.onIOPub = ({ header, content }) => {
    const any = content as { data?: Bundle; ename?: string; evalue?: string; text?: string };
    if (header.msg_type === "display_data" || header.msg_type === "execute_result") {
      said.push(String(any.data?.["text/plain"] ?? ""));
      if (any.data?.["text/html"] || any.data?.[WIDGET]) {
        shown.push(put(any.data));
      }
    } else if (header.msg_type === "error") {
      said.push(`${any.ename}: ${any.evalue}`);
    }
  };
  await future.done;
  await Promise.all(shown);
  return said;
}

Object.assign(window, { bare: { start, run, end: () => kernel.shutdown() } });
