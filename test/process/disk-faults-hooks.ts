import childProcess, { type ForkOptions } from "node:child_process";
import fs from "node:fs";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { join, sep } from "node:path";

/**
 * Loaded into the service and its workers: counts the file system calls on paths in
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
const { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, readSync, writeSync } = fs;
/** Paths of the open files in the folder, by their descriptors. */
const files = new Map<number, string>();

/** Which call fails: the `nth` of a kind in one process, or all calls `from` one on; neither: none. */
interface Plan {
  id: number;
  kind: string | null;
  nth: number;
  from: number;
  code: string;
}

// All processes share the plan, which is padded and replaced in place, and a record of each call: open files, as each
// call of the service costs one of these calls of each.
const planFile = openSync(`${socket}.plan`, "a+");
const callsFile = openSync(`${socket}.calls`, "a");
const planBytes = 512;
const recordBytes = 128;
let planText = "";
let plan: Plan = { id: 0, kind: null, nth: 0, from: 0, code: "" };
/** Calls of this process under the plan, by kind. */
const counts = new Map<string, number>();

if (process.send === undefined) {
  setPlan(new URLSearchParams());
  listenForRequests();
  passOnEnvironment();
}
for (const name of names) {
  replace(fs, `${name}Sync`, (call) => failingCall(name, call));
  replace(fs, name, (call) => failingCallback(name, call));
  replace(fs.promises, name, (call) => failingPromise(name, call));
}
syncBuiltinESMExports();

function setPlan(query: URLSearchParams): void {
  const next: Plan = {
    id: plan.id + 1,
    kind: query.get("kind"),
    nth: Number(query.get("nth")),
    from: Number(query.get("from") ?? 0),
    code: query.get("code") ?? "",
  };
  const writable = openSync(`${socket}.plan`, "r+");
  writeSync(writable, JSON.stringify(next).padEnd(planBytes), 0);
  closeSync(writable);
  ftruncateSync(callsFile);
  readPlan();
}

function readPlan(): void {
  const bytes = Buffer.alloc(planBytes);
  readSync(planFile, bytes, 0, planBytes, 0);
  const text = bytes.toString();
  if (text === planText) return;
  planText = text;
  plan = JSON.parse(text) as Plan;
  counts.clear();
}

/** `GET /?kind=…&nth=3&code=EIO` sets the next fault and returns what happened since the last request. */
function listenForRequests(): void {
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? "", "http://faults").searchParams;
    const calls = countsByKind();
    const failedFile = failedFileOf(plan);
    const failed = fs.existsSync(failedFile) ? readFileSync(failedFile, "utf8") : null;
    setPlan(query);
    response.end(JSON.stringify({ calls, failed }));
  });
  server.listen(socket).unref();
}

/** Returns the most calls of each kind in one process. */
function countsByKind(): Record<string, number> {
  const records = readFileSync(`${socket}.calls`, "utf8").split("\n").slice(0, -1);
  const processes = Object.values(Object.groupBy(records, (record) => record.split(" ", 1)[0]!));
  const most: Record<string, number> = {};
  for (const own of processes) {
    const byKind = Object.groupBy(own ?? [], (record) => record.slice(record.indexOf(" ")).trim());
    for (const [kind, all = []] of Object.entries(byKind)) most[kind] = Math.max(most[kind] ?? 0, all.length);
  }
  return most;
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
    if (fault === undefined) return track(name, parameters[0], Reflect.apply(call, this, parameters));
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
    if (name === "open" && isWithin(parameters[0])) watchHandle(result as object, String(parameters[0]));
    return result;
  };
}

function watchHandle(handle: object, path: string): void {
  for (const name of handleNames) {
    replace(
      handle,
      name,
      (call) =>
        async function (this: unknown, ...parameters) {
          const fault = nextFault(name, path);
          if (fault === undefined) return Reflect.apply(call, this, parameters);
          if (name === "close") await Reflect.apply(call, this, parameters);
          throw fault;
        },
    );
  }
}

/** Remembers which file descriptors are files in the folder. */
function track<T>(name: string, first: unknown, result: T): T {
  if (name === "open" && isWithin(first)) files.set(Number(result), String(first));
  if (name === "close") files.delete(Number(first));
  return result;
}

function faultOf(name: string, first: unknown): Error | undefined {
  const path = typeof first === "number" ? files.get(first) : String(first);
  return path !== undefined && isWithin(path) ? nextFault(name, path) : undefined;
}

function isWithin(path: unknown): boolean {
  const text = String(path);
  if (text.startsWith(join(folder, "tasks.db"))) return false;
  return text === folder || text.startsWith(folder + sep);
}

function nextFault(name: string, path: string): Error | undefined {
  readPlan();
  const kind = kindOf(name, path);
  const nth = (counts.get(kind) ?? 0) + 1;
  counts.set(kind, nth);
  writeSync(callsFile, `${`${process.pid} ${kind}`.padEnd(recordBytes - 1)}\n`);
  const isLasting = plan.from > 0;
  const isFailing = isLasting
    ? fstatSync(callsFile).size / recordBytes >= plan.from
    : kind === plan.kind && nth === plan.nth;
  if (!isFailing || (!noteFailure(name) && !isLasting)) return undefined;
  return Object.assign(new Error(`${plan.code}: injected by the test, ${name}`), {
    code: plan.code,
    syscall: name,
  });
}

/** Returns whether this is the first failure under the plan, in any process. */
function noteFailure(name: string): boolean {
  try {
    const file = openSync(failedFileOf(plan), "wx");
    writeSync(file, name);
    closeSync(file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}

function failedFileOf({ id }: Plan): string {
  return `${socket}.failed-${id}`;
}

/** Returns what is done to which file: tasks, tracks and segments are the same to the service. */
function kindOf(name: string, path: string): string {
  const place = path
    .slice(folder.length + 1)
    .replace(/(?<=^(?:files|others|parts)\/)[^/]+/, "ID")
    .replace(/(?:main|audio)(?:-\d+)?$/, "track");
  return `${name} ${place}`.trim();
}
