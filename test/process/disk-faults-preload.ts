import childProcess, { type ForkOptions } from "node:child_process";
import fs from "node:fs";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { join, sep } from "node:path";

/**
 * Loaded by `node --import` into the service and its workers: counts the file system calls on paths in
 * DATA_DIR, except those of the task store, and makes them fail as requested over HTTP at the socket
 * DISK_FAULTS. A call that fails has no effect, except `close`, which still closes.
 */
const names = [
  "open close read readv write writev fstat fsync fdatasync ftruncate sync datasync",
  "stat truncate mkdir readdir rename rm unlink statfs readFile writeFile appendFile",
].flatMap((line) => line.split(" "));
const handleNames = names.filter((name) => name !== "open");

const folder = process.env["DATA_DIR"] ?? "";
const socket = process.env["DISK_FAULTS"] ?? "";
const { closeSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, writeFileSync } = fs;
const files = new Set<number>();

/**
 * Shared by all processes, as files: which call fails (0: none), its error code, whether all later ones fail
 * too, and the folder in which each call creates the file of its number.
 */
interface Plan {
  n: number;
  code: string;
  isLasting: boolean;
  calls: string;
}
const planFile = `${socket}.plan`;
const failedFile = `${socket}.failed`;
/** The last number that this process has seen, by folder. */
const seen = new Map<string, number>();

if (process.send === undefined) {
  setPlan({ n: 0, code: "", isLasting: false });
  listenForRequests();
  passOnEnvironment();
}
for (const name of names) {
  replace(fs, `${name}Sync`, (call) => failingCall(name, call));
  replace(fs, name, (call) => failingCallback(name, call));
  replace(fs.promises, name, (call) => failingPromise(name, call));
}
syncBuiltinESMExports();

function setPlan(plan: Omit<Plan, "calls">): void {
  const calls = `${socket}.calls-${process.hrtime.bigint()}`;
  mkdirSync(calls);
  writeFileSync(`${planFile}.new`, JSON.stringify({ ...plan, calls }));
  renameSync(`${planFile}.new`, planFile);
}

function currentPlan(): Plan {
  return JSON.parse(readFileSync(planFile, "utf8")) as Plan;
}

/** `GET /?n=3&code=EIO&lasting=1` sets the next fault and returns what happened since the last request. */
function listenForRequests(): void {
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? "", "http://faults").searchParams;
    const calls = readdirSync(currentPlan().calls).length;
    const failed = fs.existsSync(failedFile) ? readFileSync(failedFile, "utf8") : "";
    writeFileSync(failedFile, "");
    setPlan({
      n: Number(query.get("n")),
      code: query.get("code") ?? "",
      isLasting: query.get("lasting") === "1",
    });
    response.end(JSON.stringify({ calls, failed: failed === "" ? null : failed }));
  });
  server.listen(socket).unref();
}

/** The service gives its workers an empty environment. */
function passOnEnvironment(): void {
  const { fork } = childProcess;
  childProcess.fork = (path: string | URL, args?: unknown, options?: ForkOptions) =>
    fork(path, args as string[], {
      ...options,
      env: { ...options?.env, DATA_DIR: folder, DISK_FAULTS: socket },
    });
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
  const { n, code, isLasting, calls } = currentPlan();
  const nth = countCall(calls);
  if (n === 0 || (isLasting ? nth < n : nth !== n)) return undefined;
  writeFileSync(failedFile, name);
  return Object.assign(new Error(`${code}: injected by the test, ${name}`), {
    code,
    syscall: name,
  });
}

/** Returns the number of this call among those of all processes. */
function countCall(calls: string): number {
  for (let nth = (seen.get(calls) ?? 0) + 1; ; nth++) {
    try {
      closeSync(openSync(join(calls, `${nth}`), "wx"));
      seen.set(calls, nth);
      return nth;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}
