import fs from "node:fs";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { join, sep } from "node:path";
import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";

/**
 * Loaded by `node --import` into every thread of the service: counts the file system calls on paths in
 * DATA_DIR, except those of the task store, and makes them fail as requested over HTTP at the socket
 * DISK_FAULTS. A call that fails has no effect, except `close`, which still closes.
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
 * Shared by all threads: calls since the last request; which of them fails (0: none); the index of its
 * error code; 1 if all later calls fail too; 1 + the index in `names` of the last call that failed.
 */
const state = isMainThread
  ? new Int32Array(new SharedArrayBuffer(5 * Int32Array.BYTES_PER_ELEMENT))
  : (getEnvironmentData(key) as Int32Array);
const files = new Set<number>();

if (isMainThread) {
  setEnvironmentData(key, state);
  listenForRequests();
}
for (const name of names) {
  replace(fs, `${name}Sync`, (call) => failingCall(name, call));
  replace(fs, name, (call) => failingCallback(name, call));
  replace(fs.promises, name, (call) => failingPromise(name, call));
}
syncBuiltinESMExports();

/** `GET /?n=3&code=EIO&lasting=1` sets the next fault and returns what happened since the last request. */
function listenForRequests(): void {
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? "", "http://faults").searchParams;
    const calls = Atomics.exchange(state, 0, 0);
    const failed = names[Atomics.exchange(state, 4, 0) - 1] ?? null;
    Atomics.store(state, 1, Number(query.get("n")));
    Atomics.store(state, 2, codes.indexOf(query.get("code") ?? ""));
    Atomics.store(state, 3, Number(query.get("lasting")));
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
      return track(name, parameters[0], Reflect.apply(call, this, parameters));
    if (name === "close") track(name, parameters[0], Reflect.apply(call, this, parameters));
    throw fault;
  };
}

function failingCallback(name: string, call: Call): Call {
  return function (this: unknown, ...parameters) {
    const done = parameters.pop();
    if (typeof done !== "function") return Reflect.apply(call, this, [...parameters, done]);
    const fault = faultOf(name, parameters[0]);
    const end = (error: unknown, ...results: unknown[]) => {
      if (fault === undefined && error === null) track(name, parameters[0], results[0]);
      Reflect.apply(done, undefined, [fault ?? error, ...results]);
    };
    if (fault === undefined || name === "close") {
      if (name === "close") track(name, parameters[0], undefined);
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

/** Remembers which file descriptors are files in the folder. */
function track<T>(name: string, first: unknown, result: T): T {
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
  const message = `${codes[code]}: injected by the test, ${name}`;
  return Object.assign(new Error(message), { code: codes[code], syscall: name });
}
