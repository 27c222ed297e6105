import { readFile, stat } from "node:fs/promises";
import { Value } from "@sinclair/typebox/value";
import type { BaseLogger } from "pino";
import { messageOf, ServiceError } from "../../model/errors.ts";
import { maxEntries, type SiteVideo } from "../../model/entry.ts";
import { parseJson } from "../../model/schema.ts";
import { startDeadline } from "../../async/deadline.ts";
import { Shares } from "../../async/shares.ts";
import type { GuardedProxy } from "../../net/proxy/guarded-proxy.ts";
import { urlForMessage } from "../../net/http-url.ts";
import { type ExtractResult, type ForkServer, startForkServer, findUnenforced } from "./fork-server.ts";
import { answerTooLargeError, endedBySignalError, extractionError, Failure } from "./failures.ts";
import { asObject } from "../../parsers/json-values.ts";
import { findExcessiveAge, findInstallation, findVersionProblem, type Installation } from "./installation.ts";
import { openSupervisor, type Supervisor } from "./supervisor.ts";

/** yt-dlp in processes of its own, which reach the network through the guarded proxy only. */
export interface YtDlp {
  /** That of the process that runs; it changes when yt-dlp is replaced. */
  readonly version: string;
  /** What the kernel of this machine does not forbid its processes, a sentence each. */
  readonly unenforced: readonly string[];
  /**
   * Returns the name of the extractor that yt-dlp has for this URL, without a request; `null`: only the
   * generic one.
   *
   * @throws ServiceError `unavailable` while the process is restarted and once closed, `upstream_invalid`
   * if an extractor fails on this URL
   */
  findExtractor(url: URL, signal: AbortSignal): Promise<string | null>;
  /** Returns which video the URL leads to, as its extractor reads it, without a request; throws as `findExtractor` does. */
  identify(url: URL, signal: AbortSignal): Promise<SiteVideo | undefined>;
  /**
   * Returns yt-dlp's info dict of `url`: known keys with any JSON as values, since the site influences
   * them. Of a playlist it has `maxEntries` entries after the first `entriesStart` (default 0), and up to `entriesAhead` further ones if
   * yt-dlp would have to read these again to get to the next; `_has_more` says whether there are more, `_count` how many there are. Without formats, `findMissingFormatsError` says why. Waits while `concurrency` others run.
   *
   * Rejects with `signal.reason` when `signal` is aborted; the processes of the extraction have ended then.
   *
   * @throws ServiceError the proxy's, if it has refused or failed a request of a failed extraction; else
   * - `login_required`, `geo_restricted`, `drm_protected`, `live_stream`, `no_media`
   * - `upstream_status`, `upstream_timeout`, `upstream_unreachable`: of a request, or of the time
   * - `upstream_invalid`: the extractor fails, or exceeds memory, processor time or the answer's size
   * - `unavailable`: as above, and if the process ends
   */
  extract(url: URL, options: ExtractOptions): Promise<unknown>;
  /** Ends all processes; safe to call twice. */
  close(): Promise<void>;
}

export interface ExtractOptions {
  signal: AbortSignal;
  owner?: string | undefined;
  entriesStart?: number | undefined;
  /** Default 0. */
  entriesAhead?: number | undefined;
}

export interface YtDlpOptions {
  /** Path of the program `yt-dlp`; empty: looked for on `searchPath`; `off`: none. */
  path: string;
  /** Folders to find yt-dlp and its Python in, as PATH has them. */
  searchPath: string;
  /** File of cookies in Netscape format, which is only read; empty: none. */
  cookiesFile: string;
  /** Extractions at a time; others wait. */
  concurrency: number;
  /** Longest extraction, milliseconds; waiting for others does not count. */
  timeoutMs: number;
  proxy: Pick<GuardedProxy, "port" | "openRun">;
  logger: Pick<BaseLogger, "info" | "warn">;
}

const MiB = 1024 * 1024;
/** Bytes that one extraction may receive. */
const maxRunBytes = 64 * MiB;
const maxAnswerBytes = 32 * MiB;
const limits = { cpuS: 20, memoryMiB: 1024 };
const maxSocketTimeoutS = 15;

/**
 * Starts yt-dlp, which loads in the background; the first calls wait for it. Returns undefined if `path` is
 * `off`, or empty and `searchPath` has none that can be used; the log then says so.
 *
 * @throws Error that names YTDLP or YTDLP_COOKIES, the rule and the value
 */
export async function openYtDlp(options: YtDlpOptions): Promise<YtDlp | undefined> {
  const { path, searchPath, cookiesFile, logger } = options;
  await readCookies(cookiesFile);
  if (path === "off") return undefined;
  try {
    const installation = await findInstallation(path, searchPath);
    if (installation === undefined) {
      logger.info(`no yt-dlp on PATH, so no page is read with it; ${howToInstall}`);
      return undefined;
    }
    const start = () => startAgain(installation, options);
    const supervisor = await openSupervisor(start, logger);
    report(supervisor.current, installation, logger);
    return createYtDlp(supervisor, options);
  } catch (cause) {
    const reason = messageOf(cause);
    if (path !== "") throw new Error(`YTDLP ${reason}, got ${JSON.stringify(path)}`, { cause });
    logger.warn(`the yt-dlp on PATH is not used: it ${reason}; ${howToInstall}`);
    return undefined;
  }
}

const howToInstall = 'pipx install "yt-dlp[default,curl-cffi]" installs the newest';

/** Returns the cookies in the file; "" without one, or of an empty one. @throws Error that names YTDLP_COOKIES, the rule and the value */
async function readCookies(file: string): Promise<string> {
  if (file === "") return "";
  const value = JSON.stringify(file);
  let text: string;
  try {
    if (!(await stat(file)).isFile()) throw new Error("it is not a file");
    // Without a byte order mark, which some editors write, and which yt-dlp refuses.
    text = new TextDecoder().decode(await readFile(file));
  } catch (cause) {
    throw new Error(`YTDLP_COOKIES must be a file that can be read, got ${value}`, { cause });
  }
  // Python's reader of cookies wants this line; yt-dlp fails for every page without it.
  if (text === "" || /^#( Netscape)? HTTP Cookie File/.test(text)) return text;
  const rule = 'a file of cookies in Netscape format, whose first line is "# Netscape HTTP Cookie File"';
  throw new Error(`YTDLP_COOKIES must be ${rule}, got ${value}`);
}

/** Starts the yt-dlp that is installed now: with another Python, perhaps. */
async function startAgain({ script }: Installation, { searchPath, proxy }: YtDlpOptions): Promise<ForkServer> {
  const installation = await findInstallation(script, searchPath);
  if (installation === undefined) throw new Error(`must be a file: ${script} is none`);
  const server = await startForkServer(installation, { searchPath, proxyPort: proxy.port });
  const problem = findVersionProblem(server.version);
  if (problem === undefined) return server;
  await server.end(problem);
  throw new Error(problem);
}

/** Says once what is found and what is wrong with it. */
function report(server: ForkServer, { script }: Installation, logger: YtDlpOptions["logger"]): void {
  const { version, landlock, seccomp } = server;
  logger.info({ version, path: script }, "using yt-dlp");
  const days = findExcessiveAge(version, Date.now());
  if (days !== undefined) {
    logger.warn({ version, days }, "yt-dlp is old: sites change, update it (pipx upgrade yt-dlp)");
  }
  const unenforced = findUnenforced(server);
  if (unenforced.length > 0) {
    const message = "the kernel does not forbid yt-dlp's processes all that it should: only Python's own checks do";
    logger.warn({ landlock, seccomp, unenforced }, message);
  }
}

function createYtDlp(supervisor: Supervisor, options: YtDlpOptions): YtDlp {
  const { cookiesFile, concurrency, timeoutMs, proxy } = options;
  const places = new Shares(concurrency, "spare");

  /** Extracts with a run of the proxy, whose error says more than what yt-dlp makes of it. */
  async function extractNow(url: URL, what: string, given: ExtractOptions): Promise<unknown> {
    const { signal, entriesStart = 0, entriesAhead = 0 } = given;
    const server = await supervisor.acquire();
    // The file was right at the start.
    const cookies = await readCookies(cookiesFile).catch((cause: unknown) => {
      throw new ServiceError("internal", messageOf(cause), { cause });
    });
    const proxyRun = proxy.openRun({ signal, maxBytes: maxRunBytes });
    const request = {
      url: withoutSmuggled(url),
      proxy: proxyRun.url,
      node: process.execPath,
      cookies,
      socketTimeoutS: Math.min(maxSocketTimeoutS, timeoutMs / 1_000),
      entries: { start: entriesStart, most: maxEntries, ahead: entriesAhead },
      maxBytes: maxAnswerBytes,
      limits,
    };
    try {
      return readAnswer(await server.extract(request, signal), what);
    } catch (error) {
      signal.throwIfAborted();
      throw proxyRun.error ?? error;
    } finally {
      proxyRun.close();
    }
  }

  return {
    get version() {
      return supervisor.current.version;
    },
    unenforced: findUnenforced(supervisor.current),

    findExtractor: async (url, signal) => (await find(supervisor, url, false, signal)).name,
    identify: async (url, signal) => (await find(supervisor, url, true, signal)).video ?? undefined,

    async extract(url, { signal, owner = "", ...entries }) {
      const what = `yt-dlp for ${urlForMessage(url)}`;
      return places.run(owner, signal, async () => {
        using deadline = startDeadline(signal, timeoutMs, what);
        return await extractNow(url, what, { ...entries, signal: deadline.signal });
      });
    },

    close: () => supervisor.close(),
  };
}

/** Asks what suits a URL; `identify`: also which video that sees in it. @throws as `YtDlp.findExtractor` does */
async function find(supervisor: Supervisor, url: URL, identify: boolean, signal: AbortSignal) {
  signal.throwIfAborted();
  const server = await supervisor.acquire();
  const result = await server.find(withoutSmuggled(url), identify, signal);
  if ("name" in result) return result;
  throw new ServiceError("upstream_invalid", `yt-dlp for ${urlForMessage(url)}: ${result.failure}`);
}

/** Removes what only yt-dlp itself puts into a fragment, which says how an extractor sends requests. */
function withoutSmuggled(url: URL): string {
  if (!url.hash.includes("__youtubedl_smuggle")) return url.href;
  const clean = new URL(url);
  clean.hash = "";
  return clean.href;
}

function readAnswer({ answer, signal }: ExtractResult, what: string): unknown {
  if (answer === null) throw answerTooLargeError(what);
  if (signal !== null) throw endedBySignalError(signal, what);
  const { info, failure } = asObject(parseJson(answer.toString("utf8")));
  if (info !== undefined) return info;
  if (Value.Check(Failure, failure)) throw extractionError(failure, what);
  throw new ServiceError("upstream_invalid", `${what}: its process gave no result`);
}
