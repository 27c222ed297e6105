import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { createLocalReader } from "./local-reader.ts";
import { openReader } from "../../../src/resolvers/page/reader/reader-pool.ts";
import type { Reader, ReadJob } from "../../../src/resolvers/page/reader/reader.ts";
import { childrenOf, isRunning } from "../../process/child-processes.ts";
import { fixedNow, pageUrl } from "./saved-client.ts";

const MiB = 1024 * 1024;
const context = { owner: undefined, signal: new AbortController().signal };
const page: ReadJob<"page"> = {
  kind: "page",
  url: new URL(pageUrl),
  contentType: "text/html; charset=utf-8",
  now: fixedNow(),
  isPlayer: false,
};

const film = `<title>Otters</title>
  <link rel="alternate" type="application/json+oembed" href="/oembed?of=1">
  <meta property="og:video" content="/otters.mp4"><meta property="og:title" content="Otters, Übung">
  <iframe src="https://player.example.com/embed/1" allowfullscreen></iframe>`;
/** Far larger than a page may be: it takes a second or more. */
const heavy = `<script>${'x({a:"b",c:[1,2,/d/]});\n'.repeat((64 * MiB) / 24)}y={file:"/1.mp4"}</script>`;
/** As large: what is read of it takes more than 60 MiB. */
const large = `<meta name="a" content="Ü${"x".repeat(32 * 1024)}">`.repeat(2_000);

/** Resolves with the error. */
const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "no error",
    (error: unknown) => error,
  );
const read = (reader: Reader, html: string) => reader.read(page, [Buffer.from(html)], context);

describe("a reader in processes of its own", () => {
  let readers: Reader[];
  let others: Set<number>;

  const open = (limits: { readMs: number; heapMiB: number } = { readMs: 60_000, heapMiB: 512 }) => {
    const reader = openReader({ processes: 1, limits });
    readers.push(reader);
    return reader;
  };
  const processes = () => childrenOf(process.pid).filter((pid) => !others.has(pid));

  beforeEach(() => {
    readers = [];
    others = new Set(childrenOf(process.pid));
  });
  afterEach(async () => {
    for (const reader of readers) await reader.close();
  });

  it("returns of files of chapters and of feeds only what a record may have", async () => {
    const url = new URL("https://cdn.example.com/a");
    const times = Array.from({ length: 49_000 }, (_, startTime) => ({ startTime }));
    const chapters = await open().read(
      { kind: "chapters", url },
      [Buffer.from(JSON.stringify({ chapters: times }))],
      context,
    );
    expect(chapters.map(({ start }) => start)).toEqual(times.slice(0, 500).map(({ startTime }) => startTime));
    const listed = Array.from({ length: 400 }, (_, start) => `<psc:chapter start="${start}" title="t"/>`).join("");
    const episodes = `<item><enclosure url="/1.mp3"/>${listed}</item>`.repeat(200);
    const feed = `<rss><channel>${episodes}</channel></rss>`;
    const list = await open().read({ kind: "feed", url, start: 0 }, [Buffer.from(feed)], context);
    expect(list?.slice).toMatchObject({ hasMore: true, count: 200 });
    expect(JSON.stringify(list).length).toBeLessThan(200_000);
  });

  it("reads pages, manifests and oEmbed responses as in this process", async () => {
    const url = new URL("https://cdn.example.com/a");
    const bodies: [ReadJob, string][] = [
      [page, film],
      [{ ...page, isPlayer: true }, film],
      [{ kind: "m3u8", url }, "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\na.m3u8"],
      [page, '<video src="/1.mp4"><track kind="chapters" src="/1.vtt"></video>'],
      [{ kind: "chapters", url }, "WEBVTT\n\n00:01.000 --> 00:02.000\nOne\n"],
      [{ kind: "oembed", url, contentType: null }, '{"type":"video","title":"T","html":"<iframe src=//e.example/1>"}'],
    ];
    const reader = open();
    for (const [job, text] of bodies) {
      const body = [Buffer.from(text.slice(0, 20)), Buffer.from(text.slice(20))];
      const result = await reader.read(job, body, context);
      expect(result).toEqual(await createLocalReader().read(job, body, context));
    }
    expect(processes()).toHaveLength(1);
  });

  it("rejects with the error of a body, and reads the next one", async () => {
    const reader = open();
    const url = new URL("https://cdn.example.com/a.mpd?token=1");
    const failed = reader.read({ kind: "dash", url }, [Buffer.from("<html>")], context);
    expect(await failureOf(failed)).toMatchObject({
      code: "upstream_invalid",
      message: expect.stringContaining("cannot read the manifest at https://cdn.example.com/a.mpd:"),
    });
    expect((await read(reader, film)).merged.fields.title).toBe("Otters, Übung");
  });

  it.each([
    ["time", heavy, { readMs: 500, heapMiB: 1_024 }, "reading it takes more than 500 ms, the limit"],
    ["memory", large, { readMs: 60_000, heapMiB: 48 }, "reading it takes more than 48 MiB of memory, the limit"],
  ])("costs a page that takes too much %s itself alone", async (_, html, limits, rule) => {
    const reader = open(limits);
    const failed = failureOf(read(reader, html));
    const rest = await Promise.all(Array.from({ length: 5 }, () => read(reader, film)));
    expect(rest.map(({ merged }) => merged.fields.title)).toEqual(Array(5).fill("Otters, Übung"));
    const message = `the page at ${pageUrl} is too complex: ${rule}`;
    expect(await failed).toMatchObject({ code: "upstream_invalid", message, retryable: false });
  });

  it("rejects with unavailable if somebody ends the process, and starts another one", async () => {
    const reader = open();
    await read(reader, film);
    const failed = failureOf(read(reader, heavy));
    for (const pid of processes()) process.kill(pid, "SIGKILL");
    expect(await failed).toMatchObject({ code: "unavailable", retryable: true });
    expect((await read(reader, film)).merged.fields.title).toBe("Otters, Übung");
  });

  it("says that a process did not start in time, and starts another one", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const reader = open();
    const failure = failureOf(read(reader, film));
    await vi.advanceTimersByTimeAsync(20_000);
    vi.useRealTimers();
    expect(await failure).toMatchObject({
      code: "unavailable",
      message: "the process that reads pages did not start within 20000 ms",
      retryable: true,
    });
    expect((await read(reader, film)).merged.fields.title).toBe("Otters, Übung");
  });

  it("reads the page of an owner that has none at once, in one more process, while another one has them all", async () => {
    const reader = openReader({ processes: 2, limits: { readMs: 60_000, heapMiB: 1_024 } });
    readers.push(reader);
    const order: string[] = [];
    const readOf = async (owner: string, html: string) => {
      await reader.read(page, [Buffer.from(html)], { ...context, owner });
      order.push(owner);
    };
    await Promise.all([film, film, film].map((html) => readOf("eve", html)));
    expect(processes()).toHaveLength(2);
    order.length = 0;
    const eve = Promise.allSettled([heavy, heavy, film].map((html) => readOf("eve", html)));
    await readOf("bob", film);
    expect(order).toEqual(["bob"]);
    expect(processes()).toHaveLength(3);
    await reader.close();
    await eve;
  });

  it("lets a request leave that is aborted while it waits or is read", async () => {
    const reader = open();
    const abort = new AbortController();
    const requests = [heavy, film].map((html) =>
      failureOf(reader.read(page, [Buffer.from(html)], { ...context, signal: abort.signal })),
    );
    abort.abort(new Error("the client has gone"));
    for (const failed of requests) expect(await failed).toHaveProperty("message", "the client has gone");
  });

  it("leaves no process once it is closed, and reads no more", async () => {
    const reader = open();
    await read(reader, film);
    const failed = failureOf(read(reader, heavy));
    const started = processes();
    expect(started).toHaveLength(1);
    await reader.close();
    expect(await failed).toMatchObject({ code: "unavailable" });
    expect(started.filter(isRunning)).toEqual([]);
    await expect(read(reader, film)).rejects.toMatchObject({ code: "unavailable" });
  });
});
