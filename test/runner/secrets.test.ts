import { afterAll, expect, test } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import type { DownloadFormat } from "../../src/model/page-info.ts";
import type { ResolveContext } from "../../src/resolvers/resolver.ts";
import { formatOf } from "../formats.ts";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";
import { startTestSite } from "../media/test-site.ts";
import { createRunnerHarness } from "./harness.ts";
import { createTestResolver, pageOf } from "./resolver.ts";
import { openApp } from "../http/open-app.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

test("everything that a page is known for is stored", async () => {
  const page = pageOf(new URL("https://video.example.com/watch"), {
    thumbnails: [{ url: "https://video.example.com/1.jpg", width: 640, height: null }],
    embed: { url: "https://video.example.com/embed", width: null, height: 360 },
    tags: ["a", "b"],
    subtitles: { en: [{ url: "https://video.example.com/en.vtt", ext: "vtt", name: null }] },
    sources: { title: "og", formats: "yt-dlp" },
    entries: [{ url: "https://video.example.com/2", title: null, duration: 7.5 }],
    extractor: "generic",
    extractor_version: "2026.10.26",
    formats: [formatOf("only", { http_headers: { "User-Agent": "Player/1.0" }, http_chunk_size: 10_000 })],
  });
  const { run } = createRunnerHarness({
    resolver: createTestResolver(async () => structuredClone(page)),
  });
  expect((await run("succeeded")).info).toEqual(page);
});

test("cookies, credentials and fragments reach the site, and neither the API, the store nor the log", async () => {
  const film = resource("video/mp4", readMedium("index-first.mp4"));
  const site = await startTestSite(new Map([["film.mp4", film]]));
  site.accepts = ({ url, headers: { cookie, authorization, referer } }) =>
    url === "/film.mp4" &&
    cookie === "session=hidden-1" &&
    authorization === "Bearer hidden-2" &&
    referer === "https://video.example.com/";
  const secrets = {
    cookies: "session=hidden-1; Domain=127.0.0.1; Path=/",
    http_headers: { Authorization: "Bearer hidden-2", Referer: "https://video.example.com/" },
  };
  const contexts: ResolveContext[] = [];
  const page = createTestResolver();
  const { runner, add, until, store, files, log, changes } = createRunnerHarness({
    engine,
    resolver: {
      ...page,
      async resolve(url, context) {
        contexts.push(context);
        const file = url.pathname === "/good" ? "film.mp4" : "none.mp4";
        const formats: DownloadFormat[] = [
          { ...formatOf("file", { url: site.url(file), height: 720 }), ...secrets },
          {
            ...formatOf("parts", { protocol: "dash", height: 360 }),
            fragments: [{ url: "https://media.example.com/hidden-3", duration: 1 }],
          },
        ];
        return pageOf(url, { formats });
      },
    },
  });
  const good = await add("https://video.example.com/good");
  const bad = await add("https://video.example.com/bad");
  runner.start();
  const done = await until(good.id, "succeeded");
  await until(bad.id, "failed");
  await runner.stop();
  expect(contexts.every(({ forDownload }) => forDownload === true)).toBe(true);
  expect(done.info?.formats).toEqual([
    formatOf("file", {
      url: site.url("film.mp4"),
      height: 720,
      http_headers: { Referer: "https://video.example.com/" },
    }),
    formatOf("parts", { protocol: "dash", height: 360 }),
  ]);

  const app = await openApp({ store, files });
  const answers = await Promise.all(["/tasks/", `/tasks/${good.id}`, `/tasks/${bad.id}`].map((url) => app.inject(url)));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
  const stored = [await store.get(good.id), await store.get(bad.id), changes];
  const everything = JSON.stringify([stored, log, answers.map(({ body }) => body)]);
  expect(log).not.toEqual([]);
  expect(everything).not.toContain("hidden");
});
