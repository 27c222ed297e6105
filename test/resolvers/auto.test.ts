import { once } from "node:events";
import { Value } from "@sinclair/typebox/value";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type ErrorCode, ServiceError } from "../../src/model/errors.ts";
import { buildApp } from "../http/app.ts";
import type { HttpClient } from "../../src/net/client.ts";
import { PageInfo } from "../../src/model/page-info.ts";
import { createAutoResolver } from "../../src/resolvers/auto.ts";
import { createPageResolver, createYtDlpResolver } from "./page/local-reader.ts";
import type { YtDlp } from "../../src/resolvers/ytdlp/yt-dlp.ts";
import { createSavedClient, fixedNow, jsonLd, pageUrl } from "./page/saved-client.ts";
import { createRecordedYtDlp, fileDict, type Recording, videoDict } from "./ytdlp/recorded.ts";

const withMedium = `<title>Page</title><meta property="og:title" content="Otters on the page">
<meta property="og:video" content="https://cdn.example.com/page.mp4">`;
const withPlayer = `<meta property="og:title" content="Otters on the page"><meta name="author" content="Ada">
<meta property="og:video:url" content="https://player.example.com/1"><meta property="og:video:type" content="text/html">`;
const article = `<title>Log in</title>`;
const failure = (code: ErrorCode) => new ServiceError(code, `yt-dlp: ${code}`);

interface Response {
  type: string;
  body: string;
  /** After redirects. */
  url?: string;
}

/** Resolves a page with this HTML (or response, or error), of which yt-dlp says what was recorded. */
async function read(
  page: string | Response | Error,
  recording: Recording,
  forDownload = false,
  entriesCursor?: string,
  hasLogin = false,
) {
  const client = createSavedClient({ [pageUrl]: typeof page === "string" ? { body: page } : page });
  const ytDlp = createRecordedYtDlp(recording);
  const resolver = createAutoResolver({
    page: createPageResolver({ client, pageMaxBytes: 1e6, now: fixedNow }),
    ytDlp: createYtDlpResolver({ ytDlp, client, now: fixedNow }),
    hasLogin,
  });
  const outcome = await resolver
    .resolve(new URL(pageUrl), { signal: new AbortController().signal, forDownload, entriesCursor })
    .catch((error: unknown) => error as ServiceError);
  if (!(outcome instanceof Error)) expect([...Value.Errors(PageInfo, outcome)]).toEqual([]);
  const isPageRead = client.requested.includes(pageUrl);
  return { outcome, asked: { page: isPageRead, ytDlp: ytDlp.extracted.length > 0 } };
}

async function untilAborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, "abort");
  throw signal.reason;
}

/** Creates a resolver whose yt-dlp extracts until it is aborted; `never`: it does not even name an extractor. */
/** @param onWait Called when yt-dlp is asked what it never answers. */
function slowResolver(page: string, extractor: string | null = "Example", onWait = () => {}) {
  const client = createSavedClient({ [pageUrl]: { body: page } });
  const recorded = createRecordedYtDlp({ extractor });
  const wait = (signal: AbortSignal) => {
    onWait();
    return untilAborted(signal);
  };
  const ytDlp: YtDlp = {
    ...recorded,
    extract: (_url, { signal }) => wait(signal),
    ...(extractor === "never" && { findExtractor: (_url, signal) => wait(signal) }),
  };
  return createAutoResolver({
    page: createPageResolver({ client, pageMaxBytes: 1e6, now: fixedNow }),
    ytDlp: createYtDlpResolver({ ytDlp, client, now: fixedNow }),
  });
}

async function readSlow(page: string, extractor: string | null): Promise<PageInfo> {
  const passTime = stopTime();
  const { signal } = new AbortController();
  const deadlineMs = performance.now() + 300;
  const info = await slowResolver(page, extractor, passTime).resolve(new URL(pageUrl), { signal, deadlineMs });
  expect(performance.now()).toBeLessThan(deadlineMs);
  return info;
}

/** Stops the time until the test ends: what is not waited for takes none. Returns a function that lets it pass until the next timer. */
function stopTime(): () => void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  return () => queueMicrotask(() => void vi.advanceTimersToNextTimer());
}

describe("the auto resolver, if yt-dlp has an extractor for the URL,", () => {
  const extractor = "Example";

  it("asks yt-dlp alone if that has formats", async () => {
    const { outcome, asked } = await read(withMedium, { extractor, info: videoDict() });
    expect(asked).toEqual({ page: false, ytDlp: true });
    expect(outcome).toMatchObject({
      title: "Otters",
      resolver: "yt-dlp",
      extractor: "Example",
      extractor_version: "2026.10.26",
      sources: { title: "yt-dlp", formats: "yt-dlp" },
    });
  });

  it("asks yt-dlp alone if that has entries", async () => {
    const entries = [{ _type: "url", url: "/watch/2" }];
    const info = { _type: "playlist", entries };
    const { outcome, asked } = await read(withMedium, { extractor, info });
    expect(asked).toEqual({ page: false, ytDlp: true });
    expect(outcome).toMatchObject({ entries: [{ url: "https://video.example.com/watch/2" }] });
  });

  it.each([extractor, null])("asks the one that has listed the first entries for the next ones: %s", async (found) => {
    const entries = [{ _type: "url", url: "/watch/2" }];
    const recording = { extractor: found, info: { _type: "playlist", entries, _has_more: true } };
    const { outcome: first } = await read(article, recording);
    const { entries_next = "" } = first as PageInfo;
    const { outcome, asked } = await read(withMedium, recording, false, entries_next);
    expect(asked).toEqual({ page: false, ytDlp: true });
    expect(outcome).toMatchObject({ entries: [{ url: "https://video.example.com/watch/2" }] });
    const { outcome: refused } = await read(withMedium, recording, false, "x");
    expect(refused).toMatchObject({ code: "invalid_request" });
  });

  it("reads the page too if yt-dlp has no formats, and fills what yt-dlp does not know", async () => {
    const { outcome, asked } = await read(withMedium, {
      extractor,
      info: videoDict({ formats: [], uploader: "Ada" }),
    });
    expect(asked).toEqual({ page: true, ytDlp: true });
    expect(outcome).toMatchObject({
      title: "Otters",
      uploader: "Ada",
      formats: [{ url: "https://cdn.example.com/page.mp4" }],
      sources: { title: "yt-dlp", uploader: "yt-dlp", formats: "og" },
      resolver: "page",
      extractor: "Example",
    });
  });

  it("returns what yt-dlp knows if the page cannot be read", async () => {
    const info = videoDict({ formats: [] });
    const { outcome } = await read(failure("upstream_status"), { extractor, info });
    expect(outcome).toMatchObject({ title: "Otters", formats: [], resolver: "yt-dlp" });
  });

  it.each<ErrorCode>(["login_required", "upstream_invalid", "upstream_timeout", "unavailable"])(
    "reads the page if yt-dlp fails with %s",
    async (code) => {
      const { outcome, asked } = await read(withMedium, { extractor, info: failure(code) }, true);
      expect(asked).toEqual({ page: true, ytDlp: true });
      expect(outcome).toMatchObject({ title: "Otters on the page", resolver: "page" });
      expect(outcome).not.toHaveProperty("extractor");
    },
  );

  it.each<[ytDlp: ErrorCode, page: ErrorCode, counts: ErrorCode]>([
    ["login_required", "upstream_status", "login_required"],
    ["upstream_timeout", "upstream_unreachable", "upstream_timeout"],
    ["upstream_invalid", "upstream_status", "upstream_status"],
    ["unavailable", "upstream_status", "upstream_status"],
  ])("if both fail, with %s and %s, rejects with %s", async (ytDlp, page, counts) => {
    const { outcome } = await read(failure(page), { extractor, info: failure(ytDlp) });
    expect(outcome).toMatchObject({ code: counts });
  });
});

describe("the auto resolver, if only yt-dlp's generic extractor suits,", () => {
  it("reads the page alone if that has formats", async () => {
    const { outcome, asked } = await read(withMedium, { info: videoDict() });
    expect(asked).toEqual({ page: true, ytDlp: false });
    expect(outcome).toMatchObject({ title: "Otters on the page", resolver: "page" });
  });

  it("asks yt-dlp too if the page has none, and fills what the page does not state", async () => {
    const info = videoDict({ duration: 90, formats: [fileDict()] });
    const { outcome, asked } = await read(withPlayer, { info });
    expect(asked).toEqual({ page: true, ytDlp: true });
    expect(outcome).toMatchObject({
      title: "Otters on the page",
      duration: 90,
      embed: { url: "https://player.example.com/1" },
      formats: [{ format_id: "18" }],
      sources: { title: "og", duration: "yt-dlp", embed: "og", formats: "yt-dlp" },
      resolver: "yt-dlp",
      extractor: "Example",
      extractor_version: "2026.10.26",
    });
  });

  it("keeps what both say of manifests that cannot be read, also if the second adds nothing", async () => {
    const manifest = (url: string) => ({ format_id: "v", protocol: "http_dash_segments", url, manifest_url: url });
    const info = { title: "Otters", formats: [manifest("https://cdn.example.com/gone.mpd")] };
    const { outcome } = await read(article, { info });
    const message = expect.stringContaining("1 format is not listed: ");
    expect(outcome).toMatchObject({ title: "Log in", formats: [], warnings: [{ code: "formats_missing", message }] });
  });

  it("takes nothing from a page that was redirected, as to a login, if yt-dlp was not", async () => {
    const login = { type: "text/html", body: article, url: "https://example.com/login" };
    const { outcome } = await read(login, { info: videoDict() });
    expect(outcome).toMatchObject({ title: "Otters", webpage_url: pageUrl, resolver: "yt-dlp" });
    expect(Object.values((outcome as PageInfo).sources)).not.toContain("html");
  });

  it("takes what the page states if yt-dlp was redirected too, or finds no media", async () => {
    const moved = { type: "text/html", body: withPlayer, url: "https://example.com/watch/7" };
    for (const changes of [{ webpage_url: moved.url }, { formats: [] }]) {
      const { outcome } = await read(moved, { info: videoDict(changes) });
      expect(outcome).toMatchObject({ title: "Otters on the page", uploader: "Ada" });
    }
  });

  it("takes the type of the medium from yt-dlp if the page knows of none", async () => {
    const info = videoDict({ formats: [fileDict({ ext: "mp3" })] });
    expect((await read(article, { info })).outcome).toMatchObject({ media_type: "audio" });
    expect((await read(withPlayer, { info })).outcome).toMatchObject({ media_type: "video" });
  });

  it("does not ask yt-dlp if the page cannot be read", async () => {
    const { outcome, asked } = await read(failure("upstream_status"), { info: videoDict() });
    expect(asked).toEqual({ page: true, ytDlp: false });
    expect(outcome).toMatchObject({ code: "upstream_status" });
  });

  it.each([
    [401, true, { title: "Otters", resolver: "yt-dlp" }],
    [403, true, { title: "Otters", resolver: "yt-dlp" }],
    [404, true, { code: "upstream_status" }],
    [403, false, { code: "upstream_status" }],
  ])("asks yt-dlp for a page that is refused if it has a login: %i, %s", async (upstreamStatus, hasLogin, expected) => {
    const refused = new ServiceError("upstream_status", "refused", { upstreamStatus });
    expect((await read(refused, { info: videoDict() }, false, undefined, hasLogin)).outcome).toMatchObject(expected);
    const { outcome } = await read(refused, { info: failure("no_media") }, false, undefined, hasLogin);
    expect(outcome).toMatchObject({ code: "upstream_status", upstreamStatus });
  });

  it("says why a page cannot be read if yt-dlp's extractor finds nothing on it", async () => {
    const refused = new ServiceError("upstream_status", "refused", { upstreamStatus: 404 });
    const { outcome } = await read(refused, { extractor: "Example", info: failure("no_media") });
    expect(outcome).toMatchObject({ code: "upstream_status", upstreamStatus: 404 });
    const known = await read(refused, { extractor: "Example", info: { title: "Soon" } });
    expect(known.outcome).toMatchObject({ title: "Soon", formats: [] });
  });

  it("returns the page's record if yt-dlp finds nothing either, with its version, which says that it was asked", async () => {
    const { outcome } = await read(article, { info: failure("no_media") }, true);
    expect(outcome).toMatchObject({ title: "Log in", formats: [], resolver: "page", extractor_version: "2026.10.26" });
    expect(outcome).not.toHaveProperty("extractor");
  });
});

describe("the auto resolver, for a page that states a list,", () => {
  const list = jsonLd({ "@type": "ItemList", itemListElement: ["/watch/2", "/watch/3"] });

  it("returns the video that yt-dlp finds, without the list beside it", async () => {
    const { outcome, asked } = await read(list, { info: videoDict() });
    expect(asked).toEqual({ page: true, ytDlp: true });
    expect(outcome).toMatchObject({ title: "Otters", formats: [{ format_id: "18" }] });
    expect(outcome).not.toHaveProperty("entries");
    expect(outcome).not.toHaveProperty("entries_count");
  });

  it.each([failure("no_media"), failure("unavailable"), videoDict({ formats: [] })])(
    "returns the list if yt-dlp finds no formats: %s",
    async (info) => {
      const { outcome } = await read(list, { info }, true);
      expect(outcome).toMatchObject({ entries: [{}, {}], sources: { entries: "json-ld" } });
    },
  );

  it("takes the list for the page's if yt-dlp's extractor finds nothing", async () => {
    const { outcome } = await read(list, { extractor: "Example", info: {} });
    expect(outcome).toMatchObject({ entries: [{}, {}], entries_count: 2, resolver: "page" });
  });
});

describe("the auto resolver, for a feed,", () => {
  it("does not ask yt-dlp if it lists media", async () => {
    const body = `<rss><channel><item><enclosure url="/1.mp3" type="audio/mpeg"/></item></channel></rss>`;
    const { outcome, asked } = await read({ type: "application/rss+xml", body }, { info: videoDict() });
    expect(asked).toEqual({ page: true, ytDlp: false });
    expect(outcome).toMatchObject({ entries: [{ url: "https://video.example.com/1.mp3" }], resolver: "page" });
  });

  const feed = { type: "application/rss+xml", body: "<rss><channel><title>Films</title></channel></rss>" };

  it("returns the entries that yt-dlp lists", async () => {
    const info = {
      _type: "playlist",
      title: "Films",
      entries: [{ _type: "url_transparent", url: "https://video.example.com/1", title: "One" }],
    };
    const { outcome, asked } = await read(feed, { info });
    expect(asked).toEqual({ page: true, ytDlp: true });
    expect(outcome).toMatchObject({ title: "Films", entries: [{ title: "One" }], resolver: "yt-dlp" });
  });

  it.each<ErrorCode>(["no_media", "upstream_invalid", "unavailable"])(
    "refuses it with its type if yt-dlp fails with %s",
    async (code) => {
      const { outcome } = await read(feed, { info: failure(code) });
      expect(outcome).toMatchObject({
        code: "upstream_invalid",
        message: expect.stringContaining("a feed of which no entry can be fetched"),
      });
    },
  );

  it("does not ask yt-dlp of documents that are no XML", async () => {
    const { outcome, asked } = await read({ type: "application/json", body: "{}" }, { info: videoDict() });
    expect(asked).toEqual({ page: true, ytDlp: false });
    expect(outcome).toMatchObject({ code: "upstream_invalid" });
  });
});

describe.each([null, "Example"])("the auto resolver, if yt-dlp fails (extractor %s),", (extractor) => {
  it.each<ErrorCode>(["login_required", "upstream_invalid", "upstream_timeout", "unavailable"])(
    "tells a download of a page without formats why: %s",
    async (code) => {
      const { outcome } = await read(withPlayer, { extractor, info: failure(code) }, true);
      expect(outcome).toMatchObject({ code });
    },
  );

  it.each<ErrorCode>(["login_required", "upstream_invalid", "upstream_timeout", "unavailable"])(
    "returns the facts of a page about a medium otherwise: %s",
    async (code) => {
      const { outcome } = await read(withPlayer, { extractor, info: failure(code) });
      expect(outcome).toMatchObject({ title: "Otters on the page", formats: [], resolver: "page" });
    },
  );

  it.each<ErrorCode>(["login_required", "geo_restricted"])(
    "says %s instead of the facts of a page without a medium",
    async (code) => {
      const { outcome } = await read(article, { extractor, info: failure(code) });
      expect(outcome).toMatchObject({ code });
    },
  );

  it.each<ErrorCode>(["upstream_invalid", "upstream_timeout", "unavailable", "drm_protected"])(
    "returns the facts of any page for %s",
    async (code) => {
      const { outcome } = await read(article, { extractor, info: failure(code) });
      expect(outcome).toMatchObject({ title: "Log in" });
    },
  );
});

describe("the auto resolver", () => {
  it("reads pages alone while yt-dlp cannot say which extractor suits", async () => {
    const recording = { extractor: failure("unavailable"), info: videoDict() };
    const first = await read(withMedium, recording);
    expect(first.asked).toEqual({ page: true, ytDlp: false });
    expect(first.outcome).toMatchObject({ resolver: "page" });
    const second = await read(withPlayer, recording);
    expect(second.asked).toEqual({ page: true, ytDlp: false });
    expect(second.outcome).toMatchObject({ formats: [] });
  });

  it("has a download tried again then, if the page has no formats", async () => {
    const { outcome } = await read(withPlayer, { extractor: failure("unavailable") }, true);
    expect(outcome).toMatchObject({ code: "unavailable", retryable: true });
  });

  it.each([
    ["an extractor", "Example", withMedium],
    ["an extractor, and the page no medium", "Example", withPlayer],
    ["no extractor", null, withPlayer],
    ["not told which extractor suits", "never", withMedium],
  ] as const)(
    "returns what the page states before the caller's deadline if yt-dlp does not end: %s",
    async (_, extractor, page) => {
      const info = await readSlow(page, extractor);
      expect(info).toMatchObject({ title: "Otters on the page", resolver: "page" });
      expect(info.formats).toHaveLength(page === withMedium ? 1 : 0);
    },
  );

  it("returns what yt-dlp knows before the caller's deadline if the page does not respond", async () => {
    const passTime = stopTime();
    const silent: HttpClient = {
      get(_url, { signal }) {
        passTime();
        return untilAborted(signal);
      },
      close: async () => {},
    };
    const ytDlp = createRecordedYtDlp({ extractor: "Example", info: videoDict({ formats: [] }) });
    const resolver = createAutoResolver({
      page: createPageResolver({ client: silent, pageMaxBytes: 1e6 }),
      ytDlp: createYtDlpResolver({ ytDlp, client: silent }),
    });
    const { signal } = new AbortController();
    const deadlineMs = performance.now() + 300;
    expect(await resolver.resolve(new URL(pageUrl), { signal, deadlineMs })).toMatchObject({
      title: "Otters",
      formats: [],
      resolver: "yt-dlp",
    });
    expect(performance.now()).toBeLessThan(deadlineMs);
  });

  it("leaves time for the page in /info if yt-dlp does not end", async () => {
    const extracting = Promise.withResolvers<void>();
    const resolver = slowResolver(withMedium, "Example", extracting.resolve);
    await using app = await buildApp({ resolver, infoTimeoutMs: 1_500 });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const responding = app.inject({ url: "/info", query: { url: pageUrl } });
    await extracting.promise;
    vi.advanceTimersByTime(1_499);
    const response = await responding;
    expect([response.statusCode, response.json()]).toMatchObject([200, { resolver: "page" }]);
  });

  it("rejects with an error that nobody expected", async () => {
    const bug = new TypeError("x");
    expect((await read(withMedium, { extractor: "Example", info: bug })).outcome).toBe(bug);
    expect((await read(withMedium, { extractor: bug })).outcome).toBe(bug);
  });
});
