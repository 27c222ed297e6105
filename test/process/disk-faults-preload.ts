import fs from "node:fs";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { join, sep } from "node:path";
import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";

/**
 * Loaded by `node --import` into every thread of the service: counts the calls of the file system on
 * what is within DATA_DIR, but for the task store's own files, and lets them fail as it is told over HTTP at the socket DISK_FAULTS. A call
 * that fails does nothing, but for `close`, which closes all the same.
 */
const codes = ["EIO", "ENOSPC", "EPIPE"];
const names = [
  "open close read readv write writev fstat fsync fdatasync ftruncate sync datasync",
  "stat truncate mkdir readdir rename rm unlink statfs readFile writeFile appendFile",
].flatMap((line) => line.split(" "));
const handleNames = names.filter((name) => name !== "open");

const folder = process.env["DATA_DIR"] ?? "";
const key = "disk-faults";
/**
 * Calls since the last order; which of them fails (0: none); the index of its code; 1: so do those that
 * follow; the index of the last that failed, and 1.
 */
const state = isMainThread
  ? new Int32Array(new SharedArrayBuffer(5 * Int32Array.BYTES_PER_ELEMENT))
  : (getEnvironmentData(key) as Int32Array);
const files = new Set<number>();

if (isMainThread) {
  setEnvironmentData(key, state);
  takeOrders();
}
for (const name of names) {
  replace(fs, `${name}Sync`, (call) => failingCall(name, call));
  replace(fs, name, (call) => failingCallback(name, call));
  replace(fs.promises, name, (call) => failingPromise(name, call));
}
syncBuiltinESMExports();

/** `GET /?n=3&code=EIO&lasting=1` arms, and answers with what happened since the last order. */
function takeOrders(): void {
  const server = createServer((request, response) => {
    const order = new URL(request.url ?? "", "http://faults").searchParams;
    const calls = Atomics.exchange(state, 0, 0);
    const failed = names[Atomics.exchange(state, 4, 0) - 1] ?? null;
    Atomics.store(state, 1, Number(order.get("n")));
    Atomics.store(state, 2, codes.indexOf(order.get("code") ?? ""));
    Atomics.store(state, 3, Number(order.get("lasting")));
    response.end(JSON.stringify({ calls, failed }));
  });
  server.listen(process.env["DISK_FAULTS"]).unref();
}

type Call = (this: unknown, ...parameters: unknown[]) => unknown;

function replace(holder: object, name: string, wrap: (call: Call) => Call): void {
  const call: unknown = Reflect.get(holder, name);
  if (typeof call === "function") Reflect.set(holder, name, wrap(call as Call));
}

function failingCall(name: string, call: Call): Call {
  return function (this: unknown, ...parameters) {
    const fault = faultOf(name, parameters[0]);
    if (fault === undefined)
      return note(name, parameters[0], Reflect.apply(call, this, parameters));
    if (name === "close") note(name, parameters[0], Reflect.apply(call, this, parameters));
    throw fault;
  };
}

function failingCallback(name: string, call: Call): Call {
  return function (this: unknown, ...parameters) {
    const done = parameters.pop();
    if (typeof done !== "function") return Reflect.apply(call, this, [...parameters, done]);
    const fault = faultOf(name, parameters[0]);
    const end = (error: unknown, ...results: unknown[]) => {
      if (fault === undefined && error === null) note(name, parameters[0], results[0]);
      Reflect.apply(done, undefined, [fault ?? error, ...results]);
    };
    if (fault === undefined || name === "close") {
      if (name === "close") note(name, parameters[0], undefined);
      return Reflect.apply(call, this, [...parameters, end]);
    }
    setImmediate(end, fault);
    return undefined;
  };
}

function failingPromise(name: string, call: Call): Call {
  return async function (this: unknown, ...parameters) {
    const fault = faultOf(name, parameters[0]);
    if (fault !== undefined) throw fault;
    const result = await Reflect.apply(call, this, parameters);
    if (name === "open" && isWithin(parameters[0])) watchHandle(result as object);
    return result;
  };
}

function watchHandle(handle: object): void {
  for (const name of handleNames) {
    replace(
      handle,
      name,
      (call) =>
        async function (this: unknown, ...parameters) {
          const fault = nextFault(name);
          if (fault === undefined) return Reflect.apply(call, this, parameters);
          if (name === "close") await Reflect.apply(call, this, parameters);
          throw fault;
        },
    );
  }
}

/** Keeps in mind which numbers are files of the folder. */
function note<T>(name: string, first: unknown, result: T): T {
  if (name === "open" && isWithin(first)) files.add(Number(result));
  if (name === "close") files.delete(Number(first));
  return result;
}

function faultOf(name: string, first: unknown): Error | undefined {
  const isCounted = typeof first === "number" ? files.has(first) : isWithin(first);
  return isCounted ? nextFault(name) : undefined;
}

function isWithin(path: unknown): boolean {
  const text = String(path);
  if (text.startsWith(join(folder, "tasks.db"))) return false;
  return text === folder || text.startsWith(folder + sep);
}

function nextFault(name: string): Error | undefined {
  const nth = Atomics.add(state, 0, 1) + 1;
  const [, failing = 0, code = 0, isLasting] = state;
  if (failing === 0 || (isLasting === 1 ? nth < failing : nth !== failing)) return undefined;
  Atomics.store(state, 4, names.indexOf(name) + 1);
  const message = `${codes[code]}: a fault of the test, ${name}`;
  return Object.assign(new Error(message), { code: codes[code], syscall: name });
}
