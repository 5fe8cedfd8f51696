// Does the connection follow one kernel, and name what is wrong?
import assert from "node:assert/strict";
import { test } from "node:test";
import { VERSION } from "../src/schema";
import { HISTORY } from "./page";
import { clientOf, Connection, loadLens } from "../src/lab/connection";

type Status = "idle" | "busy" | "restarting" | "dead";

/** A kernel whose messages the test writes. */
class FakeKernel {
  status: Status = "idle";
  isDisposed = false;
  comms: FakeComm[] = [];
  ran: string[] = [];
  reply: unknown = { status: "ok" };
  private listener: ((kernel: unknown, status: Status) => void) | null = null;
  readonly statusChanged = {
    connect: (slot: (kernel: unknown, status: Status) => void, self: unknown): void => {
      this.listener = slot.bind(self);
    },
    disconnect: (): void => {
      this.listener = null;
    }
  };

  createComm(): FakeComm {
    const comm = new FakeComm();
    this.comms.push(comm);
    return comm;
  }

  requestExecute({ code }: { code: string }): { done: Promise<unknown> } {
    this.ran.push(code);
    return { done: Promise.resolve({ content: this.reply }) };
  }

  turn(status: Status): void {
    this.status = status;
    this.listener?.(this, status);
  }
}

class FakeComm {
  isDisposed = false;
  opened: unknown = null;
  sent: unknown[] = [];
  closed = false;
  onMsg: (message: unknown) => void = () => undefined;
  onClose: () => void = () => undefined;
  open(data: unknown): void {
    this.opened = data;
  }
  send(data: unknown): void {
    this.sent.push(data);
  }
  close(): void {
    this.closed = true;
  }
  says(data: unknown): void {
    this.onMsg({ content: { data } });
  }
}

function follow(): { kernel: FakeKernel; comm: FakeComm; connection: Connection } {
  const kernel = new FakeKernel();
  const connection = new Connection(() => undefined, "ko");
  connection.follow(kernel as never);
  return { kernel, comm: kernel.comms[0]!, connection };
}

const HELLO = { type: "hello", version: VERSION, language: "ko", environment: HISTORY.environment };
const SNAPSHOT = { type: "snapshot", history: HISTORY };

test("greets, takes the snapshot, adds records, asks to forget", () => {
  const { comm, connection } = follow();
  assert.deepEqual(comm.opened, { type: "hello", version: VERSION, locale: "ko", client: "" });
  assert.equal(connection.state.name, "connecting");
  comm.says(HELLO);
  comm.says(SNAPSHOT);
  assert.equal(connection.state.name, "live");
  const row = HISTORY.functions[0]!;
  comm.says({ type: "append", function: row.summary, record: { ...row.records[0]!, id: 50 } });
  assert.ok(connection.state.name === "live");
  assert.equal(connection.state.history.functions[0]!.records.length, 6);
  connection.request("clear");
  assert.deepEqual(comm.sent, [{ type: "request", what: "clear" }]);
});

test("a page has its name again when it is loaded again, and a copy of it has another", () => {
  const stored = new Map<string, string>();
  const hide: (() => void)[] = [];
  Object.assign(globalThis, {
    sessionStorage: {
      getItem: (key: string) => stored.get(key) ?? null,
      setItem: (key: string, value: string) => stored.set(key, value),
      removeItem: (key: string) => stored.delete(key)
    },
    addEventListener: (_: string, listener: () => void) => hide.push(listener)
  });
  const name = clientOf();
  assert.notEqual(clientOf(), name);
  hide[0]!();
  assert.equal(clientOf(), name);
  Object.assign(globalThis, { sessionStorage: undefined });
});

test("a kernel without the lens closes the comm", () => {
  const { comm, connection, kernel } = follow();
  comm.onClose();
  assert.equal(connection.state.name, "absent");
  connection.greet();
  kernel.comms[1]!.says(SNAPSHOT);
  assert.equal(connection.state.name, "live");
});

test("another version is named, whichever side finds it", () => {
  const first = follow();
  first.comm.says({ ...HELLO, version: 99 });
  assert.deepEqual(first.connection.state, { name: "version", got: 99, message: null });
  assert.ok(first.comm.closed);
  first.comm.says(SNAPSHOT);
  assert.equal(first.connection.state.name, "version");
  const second = follow();
  const message = { en: "old", ko: "옛" };
  second.comm.says({ type: "error", tag: "version", message });
  assert.deepEqual(second.connection.state, { name: "version", got: 0, message });
});

test("the lens is loaded without binding a name; a kernel without Saem is named", async () => {
  const { connection, kernel } = follow();
  await connection.load();
  assert.deepEqual(kernel.ran, ["get_ipython().extension_manager.load_extension('saem.lens')"]);
  assert.equal(connection.state.name, "connecting");
  kernel.reply = { status: "error", ename: "ModuleNotFoundError", evalue: "No module" };
  const why = "ModuleNotFoundError: No module";
  assert.equal(await loadLens(kernel as never), why);
  await connection.load();
  assert.deepEqual(connection.state, { name: "notInstalled", why });
});

test("restart and death", () => {
  const { comm, connection, kernel } = follow();
  comm.says(SNAPSHOT);
  kernel.turn("restarting");
  assert.equal(connection.state.name, "restarting");
  comm.says(SNAPSHOT);
  assert.equal(connection.state.name, "restarting", "the old process is not heard");
  kernel.turn("idle");
  assert.equal(connection.state.name, "absent");
  kernel.turn("dead");
  assert.equal(connection.state.name, "dead");
});

test("another kernel: the first is left and not heard", () => {
  const { comm, connection, kernel } = follow();
  const other = new FakeKernel();
  connection.follow(other as never);
  assert.ok(comm.closed);
  comm.says(SNAPSHOT);
  kernel.turn("dead");
  assert.equal(connection.state.name, "connecting");
  connection.follow(null, { name: "none" });
  assert.equal(connection.state.name, "none");
});
