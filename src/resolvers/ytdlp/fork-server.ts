import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { createCalls, endedError } from "./calls.ts";
import { createValueCount } from "../../model/value-count.ts";
import { SiteVideo } from "../../model/entry.ts";
import type { Installation } from "./installation.ts";
import { type Frame, killGroup, type PythonProcess, readFrames, startPython } from "./python-process.ts";

/** What the process says of itself before it loads yt-dlp. */
const Hello = Type.Object({
  version: Type.String(),
  /** File that changes with the version of yt-dlp. */
  versionFile: Type.String(),
  /** Version of the kernel's Landlock; 0: none. */
  landlock: Type.Integer(),
  /** Whether the kernel filters its system calls. */
  seccomp: Type.Boolean(),
  /** Whether each connection of an extraction leads to the proxy, whatever its address. */
  proxied: Type.Boolean(),
});

/** A Python process that has yt-dlp in memory and forks one for each extraction. */
export interface ForkServer extends Static<typeof Hello> {
  /** Resolves with the reason once the process has ended and what it started has been killed. */
  readonly ended: Promise<string>;
  /**
   * Returns which extractor suits a URL.
   *
   * @throws ServiceError `unavailable` if the process ends; it is killed if it does not respond in time
   */
  find(url: string, identify: boolean, signal: AbortSignal): Promise<FindResult>;
  /** Extracts in a process of its own. It has ended when this settles; throws as `find` does. */
  extract(request: ExtractRequest, signal: AbortSignal): Promise<ExtractResult>;
  /** Kills the process and what it started; safe to call twice. */
  end(reason: string): Promise<void>;
  /** Waits until no call runs, then ends it. */
  endWhenIdle(reason: string): Promise<void>;
}

const FindResult = Type.Union([
  Type.Object({ name: Type.Union([Type.String(), Type.Null()]), video: Type.Union([SiteVideo, Type.Null()]) }),
  Type.Object({ failure: Type.String() }),
]);
type FindResult = Static<typeof FindResult>;

interface ExtractRequest {
  url: string;
  /** URL of the proxy for this extraction, with its credential. */
  proxy: string;
  /** Path of the Node to run sites' scripts with. */
  node: string;
  /** Cookies in Netscape format; empty: none. */
  cookies: string;
  socketTimeoutS: number;
  /** Which entries of a playlist are wanted: `most` after the first `start`, and `ahead` after these if they cost little. */
  entries: { start: number; most: number; ahead: number };
  /** Largest answer, bytes. */
  maxBytes: number;
  limits: { cpuS: number; memoryMiB: number };
}

export interface ExtractResult {
  /** What the process of the extraction sent; `null`: too much. */
  answer: Buffer | null;
  /** Number of the signal that ended it. */
  signal: number | null;
}

const Started = Type.Object({ pid: Type.Integer({ minimum: 2 }) });
const Ended = Type.Object({ signal: Type.Union([Type.Integer(), Type.Null()]) });

const helloLimitMs = 10_000;
/** Without compiled files, as in a zip archive, loading takes seconds. */
const loadLimitMs = 60_000;
/** Matching a URL may take 0.3 s of processor time, which others use, too. */
const findLimitMs = 10_000;

interface ForkServerOptions {
  searchPath: string;
  /** The only port of 127.0.0.1 that its processes connect to. */
  proxyPort: number;
}

/**
 * Starts the process; it loads yt-dlp in the background, which the first calls wait for.
 *
 * @throws Error with the reason if it does not start
 */
export async function startForkServer(
  { script, python }: Installation,
  { searchPath, proxyPort }: ForkServerOptions,
): Promise<ForkServer> {
  const settings = JSON.stringify({ service: process.pid, proxyPort, node: process.execPath });
  const server = startPython({ python, program: "fork_server.py", args: [script, settings], searchPath });
  const { hello, loaded } = awaitStart(server, (frame) => calls.receive(frame));
  const calls = createCalls(server, loaded);
  let finds = 0;
  const groups = new Set<number>();
  const ended = server.ended.then((reason) => {
    for (const group of groups) killGroup(group);
    calls.reject(reason);
    return reason;
  });

  async function end(reason: string): Promise<void> {
    server.kill(reason);
    await ended;
  }

  return {
    ...(await hello),
    ended,
    end,
    async find(url, identify, signal) {
      finds += 1;
      try {
        // The process responds to one after the other.
        const limitMs = finds * findLimitMs;
        return await calls.run(
          { do: "find", url, identify },
          { signal, limitMs, onFrame: (frame) => parse(FindResult, frame) },
        );
      } finally {
        finds -= 1;
      }
    },
    extract: (request, signal) =>
      calls.run({ ...request, do: "extract" }, { signal, onFrame: collectAnswer(request.maxBytes, groups) }),
    async endWhenIdle(reason) {
      await calls.untilIdle();
      await end(reason);
    },
  };
}

/** Reads frames: what the process says of its start, within time limits, and what is for `receive`. */
function awaitStart(server: PythonProcess, receive: (frame: Frame) => void) {
  const hello = Promise.withResolvers<Static<typeof Hello>>();
  const loaded = Promise.withResolvers<void>();
  // The calls that wait for it report this; there may be none.
  loaded.promise.catch(() => {});
  const rejectBoth = async () => {
    const reason = await server.ended;
    hello.reject(new Error(`does not start: ${reason}`));
    loaded.reject(endedError(reason));
  };
  void rejectBoth();
  void killUnlessDone(server, hello.promise, helloLimitMs);
  void killUnlessDone(server, loaded.promise, loadLimitMs);

  function onFrame(frame: Frame): void {
    if (frame.kind === "H") hello.resolve(parse(Hello, frame));
    else if (frame.kind === "R") loaded.resolve();
    else receive(frame);
  }

  readFrames(server.socket, onFrame, (reason) => server.kill(reason));
  return { hello: hello.promise, loaded: loaded.promise };
}

async function killUnlessDone(
  server: { kill(reason: string): void },
  step: Promise<unknown>,
  ms: number,
): Promise<void> {
  const timer = setTimeout(() => server.kill(`it was not ready within ${ms} ms`), ms);
  await step.catch(() => {});
  clearTimeout(timer);
}

/**
 * Collects the chunks of an answer; one that is too large is dropped while the rest of it arrives. `groups` has the
 * process group of the extraction, should it have one of its own, while it runs.
 */
function collectAnswer(maxBytes: number, groups: Set<number>): (frame: Frame) => ExtractResult | undefined {
  const chunks: Buffer[] = [];
  let size = 0;
  let group = 0;
  const values = createValueCount();
  const isTooLarge = () => size > maxBytes || values.count > maxValues;
  return (frame) => {
    if (frame.kind === "S") groups.add((group = parse(Started, frame).pid));
    if (frame.kind === "D" && !isTooLarge()) {
      size += frame.payload.length;
      values.add(frame.payload);
      chunks.push(frame.payload);
    }
    if (frame.kind !== "E") return undefined;
    groups.delete(group);
    const answer = isTooLarge() ? null : Buffer.concat(chunks);
    return { answer, signal: parse(Ended, frame).signal };
  };
}

/**
 * Values that an answer may have; captions in 200 languages are some 7,000. It is parsed at once, which takes 60 ms for so many values
 * if their names are all different, and seconds for all that its bytes could hold.
 */
const maxValues = 100_000;

/** @throws Error of TypeBox or JSON if the payload is something else */
function parse<T extends TSchema>(schema: T, { payload }: Frame): Static<T> {
  return Value.Parse(schema, JSON.parse(payload.toString("utf8")));
}

/** The first version of Landlock with rules for TCP. */
const firstWithTcp = 4;

/** Returns what the kernel does not forbid yt-dlp's processes, a sentence each; Python's own checks alone do. */
export function findUnenforced({
  landlock,
  seccomp,
  proxied,
}: Omit<Static<typeof Hello>, "version" | "versionFile">): string[] {
  return [
    ...(landlock === 0 ? ["yt-dlp may read other files"] : []),
    ...(landlock === 0 && !seccomp ? ["yt-dlp may write files", "yt-dlp may run programs"] : []),
    ...findOpenConnections(landlock, proxied),
    ...(seccomp ? [] : ["yt-dlp may make any system call"]),
  ];
}

function findOpenConnections(landlock: number, proxied: boolean): string[] {
  if (landlock < firstWithTcp) {
    return [`yt-dlp may${proxied ? ", while it is loaded," : ""} open TCP connections past the proxy`];
  }
  return proxied ? [] : ["yt-dlp may open TCP connections to the port of the proxy on other hosts"];
}
