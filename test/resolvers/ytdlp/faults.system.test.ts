import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { constants, crc32, deflateRawSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { YtDlp } from "../../../src/resolvers/ytdlp/yt-dlp.ts";
import { childrenOf, isRunning, processorMs } from "../../process/child-processes.ts";
import { never, openHarness, openSite, sendPage, type Site, type YtDlpHarness } from "./harness.ts";
import { createVariant, installed, missing, pythonPath, setVersion, type Variant } from "./installed.ts";

const video = '<title>A</title><video src="/v.mp4"></video>';

describe.skipIf(installed === undefined || process.platform !== "linux")(`yt-dlp's process${missing}`, () => {
  let site: Site;
  let harness: YtDlpHarness;
  /** Requests that have no response. */
  const hanging = new Set<string>();
  /** What each start takes until calls succeed, milliseconds: the delay before it (of the first: none) and processor time. */
  const starts: { delayMs: number; usedMs: number }[] = [];

  beforeAll(async () => {
    const bomb = createBomb(64);
    site = await openSite((request, response) => {
      const path = request.url ?? "";
      if (path.startsWith("/hangs")) hanging.add(path);
      else if (path === "/bomb") {
        response.setHeader("content-encoding", "gzip");
        response.setHeader("content-type", "text/html").end(bomb);
      } else if (path === "/large") {
        response.setHeader("content-type", "text/html").end(`<title>${" ".repeat(100_000_000)}`);
      } else if (path === "/feed") {
        const item = (n: number) => `<item><title>${n}</title><link>https://v.example/${n}</link></item>`;
        const items = Array.from({ length: 10_000 }, (_, n) => item(n)).join("");
        response
          .setHeader("content-type", "application/rss+xml")
          .end(`<rss version="2.0"><channel><title>F</title>${items}</channel></rss>`);
      } else sendPage(response, video);
    });
    harness = await openHarness();
    await findAgain(harness.ytDlp, new URL(site.origin));
    await extract("/");
    starts.push({ delayMs: 0, usedMs: processorMs(serverPid()) });
  });

  afterAll(async () => {
    await harness[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
  });

  const extract = (path: string, signal = never) => harness.ytDlp.extract(new URL(path, site.origin), { signal });
  const vimeo = new URL("https://vimeo.com/1");
  const find = () => findAgain(harness.ytDlp, vimeo);
  const serverPid = () => childrenOf(process.pid).find(isServer)!;
  const untilHanging = (path: string) => vi.waitUntil(() => hanging.delete(path), 60_000);
  const expectBack = async () => {
    await vi.waitFor(async () => expect(await find()).toBe("vimeo"), { timeout: 60_000 });
    await extract("/");
    const delays = harness.log.filter((line) => "delayMs" in line) as { delayMs: number }[];
    starts.push({ delayMs: delays.at(-1)!.delayMs, usedMs: processorMs(serverPid()) });
  };

  it("tells which extractor suits a URL, and null if none does but the generic one", async () => {
    expect(await find()).toBe("vimeo");
    const { ytDlp } = harness;
    const watch = new URL("https://www.youtube.com/watch?v=aaaaaaaaaaa");
    expect(await findAgain(ytDlp, watch)).toBe("youtube");
    const choosesByOthers = new URL("/playlist?list=PLwiyx1dc3P2JR9N8gQaQN_BCvlSlap7re", watch);
    expect(await findAgain(ytDlp, choosesByOthers)).toBe("youtube:tab");
    const hasSeveralExpressions = new URL("https://rss.art19.com/episodes/5ba1413c-48b8-472b-9cc3-cfd952340bdb.mp3");
    expect(await findAgain(ytDlp, hasSeveralExpressions)).toBe("Art19");
    expect(await findAgain(ytDlp, new URL(site.origin))).toBeNull();
  });

  it("is killed: calls fail at once, later ones do not, and nothing of it is left", async () => {
    const running = extract("/hangs-killed").catch((error: unknown) => error);
    await untilHanging("/hangs-killed");
    const pid = serverPid();
    const children = childrenOf(pid);
    expect(children).toHaveLength(1);
    process.kill(pid, "SIGKILL");
    expect(await running).toMatchObject({ code: "unavailable", retryable: true });
    await vi.waitUntil(() => !children.some(isRunning), 60_000);
    await expect(find()).rejects.toMatchObject({ code: "unavailable" });
    await expectBack();
  });

  it("hangs: it is ended and restarted", async () => {
    const pid = serverPid();
    process.kill(pid, "SIGSTOP");
    await expect(find()).rejects.toMatchObject({ code: "unavailable" });
    await vi.waitUntil(() => !isRunning(pid), 60_000);
    await expectBack();
  });

  it("hangs while an extraction is canceled: both are ended", async () => {
    const cancel = new AbortController();
    const running = extract("/hangs-both", cancel.signal).catch((error: unknown) => error);
    await untilHanging("/hangs-both");
    const pid = serverPid();
    const pids = [pid, ...childrenOf(pid)];
    process.kill(pid, "SIGSTOP");
    cancel.abort(new Error("canceled"));
    expect(await running).toBe(cancel.signal.reason);
    await vi.waitUntil(() => !pids.some(isRunning), 60_000);
    await expectBack();
  });

  it("is back 2 s and what a start takes after each of these at the latest", () => {
    const [first, ...others] = starts;
    expect(others).toHaveLength(3);
    expect(Math.max(...others.map(({ delayMs }) => delayMs))).toBeLessThanOrEqual(2_000);
    expect(Math.max(...others.map(({ usedMs }) => usedMs))).toBeLessThan(3 * first!.usedMs);
  });

  it("ends a canceled extraction before the call rejects, with less than 30 ms of processor time", async () => {
    // The best counts: others may have the processor's caches meanwhile.
    const times: number[] = [];
    while (times.length < 30 && !times.some((ms) => ms < 30)) {
      const cancel = new AbortController();
      const path = `/hangs-cancel-${times.length}`;
      const running = extract(path, cancel.signal).catch((error: unknown) => error);
      await untilHanging(path);
      const server = serverPid();
      const children = childrenOf(server);
      expect(children).toHaveLength(1);
      const [serverMs, own] = [processorMs(server), process.cpuUsage()];
      cancel.abort(new Error("canceled"));
      expect(await running).toBe(cancel.signal.reason);
      const { user, system } = process.cpuUsage(own);
      times.push((user + system) / 1_000 + processorMs(server) - serverMs);
      expect(children.filter(isRunning)).toEqual([]);
    }
    expect(Math.min(...times)).toBeLessThan(30);
  });

  it("has a limited number of extractions; others wait, and can be canceled", async () => {
    const cancel = new AbortController();
    const running = ["/hangs-1", "/hangs-2"].map((path) => extract(path, cancel.signal).catch(() => {}));
    await untilHanging("/hangs-1");
    await untilHanging("/hangs-2");
    const waiting = new AbortController();
    const third = extract("/hangs-3", waiting.signal).catch((error: unknown) => error);
    const fourth = extract("/");
    waiting.abort(new Error("no longer wanted"));
    expect(await third).toBe(waiting.signal.reason);
    expect(childrenOf(serverPid())).toHaveLength(2);
    cancel.abort(new Error("canceled"));
    await Promise.all(running);
    expect(await fourth).toMatchObject({ title: "A (1)" });
    expect(hanging).toEqual(new Set());
  });

  it("starts nothing for a signal that is aborted already", async () => {
    const signal = AbortSignal.abort(new Error("canceled"));
    await expect(extract("/hangs-never", signal)).rejects.toBe(signal.reason);
    await expect(harness.ytDlp.findExtractor(new URL(site.origin), signal)).rejects.toBe(signal.reason);
    expect(hanging).toEqual(new Set());
  });

  it("answers others while the proxy does not accept the connection of an extraction", async () => {
    await using proxy = await openFullPort();
    await using busy = await openHarness({ proxy });
    await findAgain(busy.ytDlp, vimeo);
    const pids = childrenOf(process.pid).filter(isServer);
    const before = proxy.connecting();
    const left = new AbortController();
    const running = busy.ytDlp.extract(new URL(site.origin), { signal: left.signal }).catch((error: unknown) => error);
    await vi.waitUntil(() => proxy.connecting() > before, 60_000);
    expect(await findAgain(busy.ytDlp, vimeo)).toBe("vimeo");
    left.abort(new Error("canceled"));
    expect(await running).toBe(left.signal.reason);
    expect(childrenOf(process.pid).filter(isServer)).toEqual(pids);
  });

  it("survives a 1 MB gzip bomb, and others go on", async () => {
    const bomb = extract("/bomb").catch((error: unknown) => error);
    expect(await extract("/")).toMatchObject({ title: "A (1)" });
    expect(await bomb).toMatchObject({ code: "upstream_invalid" });
    expect(await find()).toBe("vimeo");
  });

  it("survives a response of 100 MB", async () => {
    await expect(extract("/large")).rejects.toMatchObject({ code: "too_large" });
    expect(await find()).toBe("vimeo");
  });

  it("lists 200 of 10,000 entries", async () => {
    const info = (await extract("/feed")) as { entries: object[] };
    expect(info.entries).toHaveLength(200);
    expect(info.entries[0]).toMatchObject({ url: "https://v.example/0", title: "0" });
  });

  it("is not left behind when the service is killed", async () => {
    const service = spawn(process.execPath, [join(import.meta.dirname, "service.ts"), `${site.origin}/hangs-service`], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await untilReady(service);
    await untilHanging("/hangs-service");
    const pids = descendantsOf(service.pid!);
    expect(pids.length).toBeGreaterThanOrEqual(2);
    service.kill("SIGKILL");
    await vi.waitUntil(() => !pids.some(isRunning), 60_000);
  });

  it("is not left behind after closing, and calls then fail", async () => {
    const before = new Set(descendantsOf(process.pid));
    const other = await openHarness();
    const url = new URL("/hangs-closing", site.origin);
    const running = other.ytDlp.extract(url, { signal: never }).catch((error: unknown) => error);
    await untilHanging("/hangs-closing");
    const pids = descendantsOf(process.pid).filter((pid) => !before.has(pid));
    // The server, its warden, and the extraction.
    expect(pids).toHaveLength(3);
    await other.ytDlp.close();
    await other.ytDlp.close();
    await vi.waitUntil(() => !pids.some(isRunning), 60_000);
    expect(await running).toMatchObject({ code: "unavailable" });
    await expect(other.ytDlp.findExtractor(url, never)).rejects.toMatchObject({
      code: "unavailable",
    });
    await other[Symbol.asyncDispose]();
  });

  it("is replaced when another version has been installed", async () => {
    using variant = createVariant({ version: "2026.10.01" });
    await using other = await openHarness({ path: variant.path });
    expect(other.ytDlp.version).toBe("2026.10.01");
    setVersion(variant.packageFolder, "2026.10.02.232323");
    await findAgain(other.ytDlp, new URL(site.origin));
    expect(other.ytDlp.version).toBe("2026.10.02.232323");
  });

  it("is replaced after the calls that wait for it to load", async () => {
    const slow = "import time; time.sleep(1)\n__all__ = []\n";
    using variant = createVariant({ version: "2026.10.01", extractors: { slow } });
    await using other = await openHarness({ path: variant.path });
    const first = findAgain(other.ytDlp, vimeo);
    await wait(50);
    setVersion(variant.packageFolder, "2026.10.02");
    expect(await Promise.all([first, findAgain(other.ytDlp, vimeo)])).toEqual(["vimeo", "vimeo"]);
    expect(other.ytDlp.version).toBe("2026.10.02");
  });

  it("is replaced by one process alone if it is killed meanwhile", async () => {
    const known = new Set(childrenOf(process.pid));
    const servers = () => childrenOf(process.pid).filter((pid) => !known.has(pid) && isServer(pid));
    const untilServers = (count: number) =>
      vi.waitUntil(() => servers().length === count, { timeout: 60_000, interval: 20 });
    using variant = createVariant({ version: "2026.10.01" });
    // Starts a second late.
    const python = join(variant.packageFolder, "../python3");
    const interpreter = readFileSync(variant.path, "utf8").slice(2).trim();
    writeFileSync(python, `#!/bin/sh\nsleep 1\nexec ${interpreter} "$@"\n`, { mode: 0o755 });
    writeFileSync(variant.path, `#!${python}\n`, { mode: 0o755 });
    await using other = await openHarness({ path: variant.path });
    const [pid = 0] = servers();
    known.add(pid);
    setVersion(variant.packageFolder, "2026.10.02");
    const found = other.ytDlp.findExtractor(vimeo, never);
    await untilServers(1);
    process.kill(pid, "SIGKILL");
    // The new version, and the one that is restarted, of which the first to start ends.
    await untilServers(2);
    await untilServers(1);
    await found.catch(() => {});
  });

  it("keeps the running version while another is being installed", async () => {
    using variant = createVariant({ version: "2026.10.01" });
    await using other = await openHarness({ path: variant.path });
    setVersion(variant.packageFolder, "1");
    expect(await findAgain(other.ytDlp, vimeo)).toBe("vimeo");
    expect(other.ytDlp.version).toBe("2026.10.01");
  });

  describe("with extractors", () => {
    const loud = `
from .common import InfoExtractor
import os, sys
__all__ = ['LoudIE']
class LoudIE(InfoExtractor):
    _VALID_URL = r'https?://loud\\.example/'
    def _real_extract(self, url):
        print('garbage' * 1000); os.write(1, b'garbage'); os.write(2, b'garbage'); sys.stdout.flush()
        return {'id': 'x', 'title': 'A', 'url': 'http://loud.example/a.mp4', 'ext': 'mp4'}
`;
    const slow = `
from .common import InfoExtractor
__all__ = ['SlowIE']
class SlowIE(InfoExtractor):
    _VALID_URL = r'https?://slow\\.example/(a+)+$'
`;
    let variant: Variant;
    let other: YtDlpHarness;
    beforeAll(async () => {
      variant = createVariant({ extractors: { loud, slow } });
      other = await openHarness({ path: variant.path });
    });
    afterAll(async () => {
      await other[Symbol.asyncDispose]();
      variant[Symbol.dispose]();
    });

    it("is not confused by what they print", async () => {
      const info = await other.ytDlp.extract(new URL("http://loud.example/"), { signal: never });
      expect(info).toMatchObject({ title: "A" });
    });

    it("gives up a URL that one takes too long to match", async () => {
      const url = new URL(`http://slow.example/${"a".repeat(60)}!`);
      // Together they take longer than one may.
      const found = Array.from({ length: 8 }, () => other.ytDlp.findExtractor(url, never));
      for (const each of await Promise.allSettled(found))
        expect(each).toMatchObject({ reason: { code: "upstream_invalid" } });
      expect(await findAgain(other.ytDlp, vimeo)).toBe("vimeo");
    });
  });

  it("sends the cookies of a file, which stays as it is", async () => {
    const cookies: (string | undefined)[] = [];
    await using cookieSite = await openSite((request, response) => {
      cookies.push(request.headers.cookie);
      response.setHeader("set-cookie", "b=2");
      sendPage(response, video);
    });
    const folder = mkdtempSync(join(tmpdir(), "cookies-"));
    const cookiesFile = join(folder, "cookies.txt");
    const text = "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\ta\t1\n";
    writeFileSync(cookiesFile, text, { mode: 0o600 });
    chmodSync(cookiesFile, 0o400);
    await using other = await openHarness({ cookiesFile });
    const url = new URL(cookieSite.origin);
    await other.ytDlp.extract(url, { signal: never });
    await other.ytDlp.extract(url, { signal: never });
    expect(readFileSync(cookiesFile, "utf8")).toBe(text);
    rmSync(folder, { recursive: true });
    expect(cookies).toEqual(["a=1", "a=1"]);
    await expect(other.ytDlp.extract(url, { signal: never })).rejects.toMatchObject({
      code: "internal",
    });
  });
});

/** Finds the extractor, again if others had the processors for the 0.3 s that matching may take. */
async function findAgain(ytDlp: YtDlp, url: URL): Promise<string | null> {
  for (;;) {
    try {
      return await ytDlp.findExtractor(url, never);
    } catch (error) {
      if ((error as { code?: string }).code !== "upstream_invalid") throw error;
    }
  }
}

/** Returns `count` times 16 MiB of zeros as gzip (RFC 1952): blocks that end with a full flush may be repeated. */
function createBomb(count: number): Buffer {
  const zeros = Buffer.alloc(16 * 1024 * 1024);
  const blocks = deflateRawSync(zeros, { finishFlush: constants.Z_FULL_FLUSH });
  const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
  const lastBlock = Buffer.from([3, 0]);
  const trailer = Buffer.alloc(8);
  let checksum = 0;
  for (let i = 0; i < count; i += 1) checksum = crc32(zeros, checksum);
  trailer.writeUInt32LE(checksum, 0);
  trailer.writeUInt32LE((count * zeros.length) % 2 ** 32, 4);
  return Buffer.concat([header, ...Array<Buffer>(count).fill(blocks), lastBlock, trailer]);
}

const fullPort = `
import socket, sys
server = socket.create_server(("127.0.0.1", 0), backlog=0)
clients = [socket.socket() for _ in range(4)]
for client in clients:
    client.setblocking(False)
    client.connect_ex(server.getsockname())
print(server.getsockname()[1], flush=True)
sys.stdin.read()
`;

/** A port that accepts no connection, as the queue of those that wait for that is full. */
async function openFullPort() {
  const child = spawn(pythonPath(), ["-c", fullPort], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const port = Number(line.toString());
  const asHex = port.toString(16).toUpperCase().padStart(4, "0");
  return {
    port,
    openRun: () => ({ url: `http://run:secret@127.0.0.1:${port}`, error: null, close() {} }),
    /** How many connections to it have begun and are not established. */
    connecting: () =>
      readFileSync("/proc/net/tcp", "utf8")
        .split("\n")
        .filter((row) => row.includes(`:${asHex} 02 `)).length,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await once(child, "exit");
    },
  };
}

function isServer(pid: number): boolean {
  return isRunning(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("fork_server.py");
}

function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

async function untilReady(service: ChildProcess): Promise<void> {
  await once(service.stdout!, "data");
  await wait(0);
}
