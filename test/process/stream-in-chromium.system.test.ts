import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { layWebm } from "../media/dash.ts";
import { type MediaFixture, readMediaFixtures } from "../media/media-fixtures.ts";
import { startTestSite } from "../media/test-site.ts";
import { audioInput, ffmpeg, missing, openFolder, videoInput } from "../remux/mp4-media.ts";
import { isChromiumMissing, launchChromium } from "../web/chromium.ts";
import { clientOf } from "./test-cluster.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";

/** How pages read a stream: `begun` resolves once there are bytes, `end` with how it ends. */
const fetched = (url: string) => `
  const begun = Promise.withResolvers();
  globalThis.begun = begun.promise;
  async function readAll() {
    const reader = (await fetch("${url}")).body.getReader();
    for (let done = false; !done; ) {
      ({ done } = await reader.read());
      begun.resolve();
    }
    return "whole";
  }
  globalThis.end = readAll().catch(({ name }) => name);
  undefined;
`;
const played = (url: string) => `
  const video = document.createElement("video");
  globalThis.begun = new Promise((resolve) => (video.onplaying = () => resolve()));
  globalThis.end = new Promise((resolve) => {
    video.onended = () => resolve("whole");
    video.onerror = () => resolve(video.error.message);
  });
  video.muted = true;
  video.src = "${url}";
  document.body.append(video);
  video.play().catch(() => {});
  undefined;
`;
const saved = (url: string) => `
  const link = document.createElement("a");
  link.download = "";
  link.href = "${url}";
  document.body.append(link);
  link.click();
`;

/** Chromium begins to play with 32 KiB. */
function makeWebm(): MediaFixture["resources"] {
  const folder = openFolder();
  const make = (name: string, options: string): Buffer => {
    ffmpeg(`${options} -cluster_time_limit 1000 ${folder.path(name)}`);
    return readFileSync(folder.path(name));
  };
  const video = make("video.webm", `${videoInput(8)} -c:v libvpx-vp9 -g 25 -deadline realtime -cpu-used 8 -b:v 200k`);
  return layWebm(video, make("audio.webm", `${audioInput(8)} -c:a libopus -b:a 64k`), 8);
}

it.skipIf(isChromiumMissing || missing("libvpx-vp9", "libopus")).each([
  ["HLS in MPEG-TS", "index.m3u8", "ts/5.ts", () => readMediaFixtures().get("HLS in MPEG-TS with B-frames")!.resources],
  ["DASH in WebM", "film.mpd", "video/5.webm", makeWebm],
])("Chromium takes no half of a film whose source dies for a whole one: %s", async (_name, entry, last, make) => {
  const dataDir = makeFolder();
  const service = await startTestService({ DATA_DIR: dataDir, ALLOW_NETWORKS: "127.0.0.1/32", RETRY_BACKOFF_MS: "1" });
  const client = await clientOf(service);
  const site = await startTestSite(new Map(make()));
  const { promise: isDead, resolve: release } = Promise.withResolvers<void>();
  site.answer(last, (response) => isDead.then(() => void response.writeHead(404).end()));
  const browser = await launchChromium();
  onTestFinished(() => browser.close());

  const { id } = await client.post(site.url(entry));
  // Each has a cache of its own.
  const pages = await Promise.all([fetched, played, saved].map(() => browser.newPage()));
  const [fetching, playing, saving] = pages as [Page, Page, Page];
  const download = saving.waitForEvent("download");
  for (const [page, read] of [
    [fetching, fetched],
    [playing, played],
    [saving, saved],
  ] as const) {
    // Any text with a policy that lets scripts read from the service.
    await page.goto(`${service.url}/docs/static/index.css`);
    await page.evaluate(read(`/tasks/${id}/stream`));
  }
  await Promise.all([fetching.evaluate("begun"), playing.evaluate("begun"), download]);
  release();
  expect(await fetching.evaluate("end")).toBe("TypeError");
  expect(await playing.evaluate("end")).toContain("data source error");
  expect(await (await download).failure()).toBe("canceled");
});
