import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { readMediaFixtures } from "../media/media-fixtures.ts";
import { startSite } from "../media/site.ts";
import { isChromiumMissing, launchChromium } from "../web/chromium.ts";
import { openTaskClient } from "./download-client.ts";
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

it.skipIf(isChromiumMissing)("Chromium takes no half of a film whose source dies for a whole one", async () => {
  const dataDir = makeFolder();
  const service = await startTestService({ DATA_DIR: dataDir, ALLOW_NETWORKS: "127.0.0.1/32", RETRY_BACKOFF_MS: "1" });
  const client = await openTaskClient(service.url);
  onTestFinished(() => client.close());
  const fixture = readMediaFixtures().get("HLS in MPEG-TS with B-frames")!;
  const site = await startSite(new Map(fixture.resources));
  onTestFinished(() => site.close());
  const { promise: isDead, resolve: release } = Promise.withResolvers<void>();
  site.answer("ts/5.ts", (response) => isDead.then(() => void response.writeHead(404).end()));
  const browser = await launchChromium();
  onTestFinished(() => browser.close());

  const { id } = await client.post(site.url(fixture.entry));
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
