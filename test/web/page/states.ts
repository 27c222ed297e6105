import type { Page } from "playwright-core";
import { expect } from "vitest";
import { ServiceError } from "../../../src/model/errors.ts";
import { resource } from "../../media/resources.ts";
import { startTestSite } from "../../media/test-site.ts";
import type { Tab } from "../browser.ts";
import { filmPage, format, playlistPage, richPage } from "./found-pages.ts";
import { landscape } from "./landscape.ts";
import type { PageApp } from "./open-app.ts";
import {
  addCollection,
  addDone,
  addEnded,
  addQueued,
  addRunning,
  halfway,
  protectedByDrm,
  unreachable,
} from "./stored-tasks.ts";

/** A state of the page: what the service has before the tab is opened, and what somebody then does. */
interface PageState {
  name: string;
  /** Whether it closes the service. */
  closesApp?: boolean;
  prepare?: (app: PageApp) => Promise<void>;
  reach: (tab: Tab, app: PageApp) => Promise<void>;
}

const address = "https://video.example.com/watch/42";
const film = "An evening walk by the sea";

/** Every state that a person can see, by the words that show it. */
export const pageStates: readonly PageState[] = [
  {
    name: "empty",
    reach: ({ page }) => page.getByText("Nothing here yet. Paste the address of a page with a video.").waitFor(),
  },
  { name: "ways here", reach: ({ page }) => page.getByText("Add to browser").click() },
  {
    name: "looking",
    prepare: async ({ pages }) => {
      pages.set(address, ({ signal }) => {
        const { promise, reject } = Promise.withResolvers<never>();
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        return promise;
      });
    },
    reach: async (tab) => {
      await tab.paste(address);
      const dialog = tab.page.getByRole("dialog", { name: "Reading the page…" });
      await dialog.getByRole("button", { name: "Stop" }).waitFor();
    },
  },
  {
    name: "other files",
    prepare: async (app) => {
      const names = ["de.vtt", "de.srt", "pt-BR.forced.vtt", "pt-BR.forced.srt"].map((end) => `${film}.${end}`);
      await addDone(
        app,
        { title: film },
        {},
        names.map((name) => ({ name, content: "WEBVTT\n" })),
      );
    },
    reach: async ({ page }) => {
      await page.getByText("Other files (4)").click();
      await page.getByRole("link", { name: `${film}.pt-BR.forced.srt` }).waitFor();
    },
  },
  {
    name: "found",
    prepare: async ({ pages }) => {
      pages.set(address, richPage(address, await openPicture()));
    },
    reach: async (tab) => {
      await tab.paste(address);
      const dialog = tab.page.getByRole("dialog", { name: "How the old bridge" });
      await dialog.getByRole("button", { name: /Show \d+ more formats/ }).click();
      await dialog.getByText("How do we know?").click();
      await dialog.getByText("Subtitles (2)").click();
      await imageOf(tab).waitFor();
    },
  },
  {
    name: "found, live",
    prepare: async ({ pages }) => {
      const live = format("live", { protocol: "m3u8", height: 1080, width: 1920, tbr: 4000 });
      pages.set(address, filmPage(address, { live_status: "is_live", duration: null, formats: [live] }));
    },
    reach: async (tab) => {
      await tab.paste(address);
      await tab.page.getByText("It is recorded from the start of the download until it ends or you stop it.").waitFor();
    },
  },
  {
    name: "no media",
    prepare: async ({ pages }) => {
      pages.set(address, filmPage(address, { title: "Opening hours", media_type: "none", formats: [] }));
    },
    reach: async (tab) => {
      await tab.paste(address);
      await tab.page.getByText("There is no video on this page to download.").waitFor();
    },
  },
  {
    name: "error",
    prepare: async ({ pages }) => {
      const message = `${address}: connecting to 192.0.2.7 took over 10000 ms`;
      pages.set(address, () => Promise.reject(new ServiceError("upstream_unreachable", message)));
    },
    reach: async (tab) => {
      tab.expectFailures(/status of 502 .*info\?url=/);
      await tab.paste(address);
      await tab.page.locator("p.failure", { hasText: "The site cannot be reached. Trying again may help." }).waitFor();
      await tab.page.getByText("Details").click();
      await tab.page.getByText("upstream_unreachable: https://").waitFor();
    },
  },
  {
    name: "several addresses",
    reach: async (tab) => {
      const addresses = [1, 2, 3, 4].map((n) => `https://video.example.com/watch/part-${n}`);
      await tab.paste(addresses.join(" "));
      await tab.page.getByRole("dialog", { name: "4 pages" }).waitFor();
      await tab.page.getByRole("button", { name: "Download 4" }).waitFor();
    },
  },
  {
    name: "playlist",
    prepare: async ({ pages }) => {
      const page = playlistPage(address, 250, { thumbnail: await openPicture() });
      // A part of a long list: every row is looked at several times.
      pages.set(address, { ...page, entries: page.entries?.slice(0, 30) ?? [] });
    },
    reach: async (tab) => {
      await tab.paste(address);
      await tab.page.getByText("This is a list. Choose what to download.").waitFor();
      await tab.page.getByRole("checkbox", { name: /^The last train, part 2 / }).check();
      await tab.page.getByRole("button", { name: "Download 1" }).waitFor();
    },
  },
  {
    name: "collection",
    prepare: addTrains,
    reach: async ({ page }) => {
      await page.getByText("1 of 5 done · 1 running · 2 waiting · 1 failed").waitFor();
      await page.getByText("Entries of the list (5)").click();
      await page.getByText(/^The site cannot be reached/).waitFor();
    },
  },
  {
    name: "all tasks",
    prepare: addAll,
    reach: async ({ page }) => {
      await page.getByText("Recording since").waitFor();
      const waiting = page.getByRole("article", { name: "A site that is down" });
      await waiting.getByText(/Next attempt at \d/).waitFor();
      const failed = page.getByRole("article", { name: "Cooking for four" });
      await failed.getByText("Trying again will not help.").waitFor();
      await failed.getByText("Details").click();
      await expect.poll(() => page.locator(".task img").count()).toBeGreaterThan(0);
    },
  },
  {
    name: "player",
    prepare: addFilm,
    reach: async ({ page }) => {
      await page.getByRole("button", { name: "Play" }).click();
      const video = page.locator("video");
      await expect
        .poll(() => video.evaluate(({ readyState }: { readyState: number }) => readyState))
        .toBeGreaterThan(0);
    },
  },
  {
    name: "file removed",
    prepare: async (app) => {
      const { id } = await addDone(app, { title: film, thumbnail: await openPicture() });
      await app.store.update(id, { file: null });
    },
    reach: async ({ page }) => {
      await page.getByText(/^File removed · \d/).waitFor();
      await page.getByRole("button", { name: "Download again" }).waitFor();
    },
  },
  {
    name: "curl command",
    prepare: addFilm,
    reach: async ({ page }) => {
      await page.getByText("More", { exact: true }).click();
      await page.getByRole("button", { name: "Copy curl command" }).click();
      await page.getByRole("textbox", { name: /^Cop/ }).waitFor();
    },
  },
  {
    name: "selecting",
    prepare: addAll,
    reach: async ({ page }) => {
      await page.getByRole("button", { name: "Select", exact: true }).click();
      await page.getByRole("checkbox", { name: "Select" }).first().check();
      await page.getByText("1 selected").waitFor();
    },
  },
  {
    name: "question",
    prepare: addFilm,
    reach: async ({ page }) => {
      await page.getByText("More", { exact: true }).click();
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("dialog", { name: `Delete “${film}” and its file?` }).waitFor();
    },
  },
  {
    name: "disconnected",
    closesApp: true,
    prepare: addFilm,
    reach: async (tab, { app }) => {
      await tab.page.getByRole("button", { name: "Play" }).waitFor();
      // A service that closes still responds: to a request for the image with 503.
      await expect.poll(() => loadedImages(tab.page)).toBe(1);
      tab.expectFailures(/net::ERR_/);
      await app.close();
      await tab.page.getByText("The connection is lost. Reconnecting…").waitFor();
    },
  },
];

async function addFilm(app: PageApp): Promise<void> {
  await addDone(app, { title: film, thumbnail: await openPicture() });
}

/** One task in each state; the one that waits comes last, as the others would claim it. */
export async function addAll(app: PageApp): Promise<void> {
  const thumbnail = await openPicture();
  await addDone(app, { title: film, thumbnail });
  await addDone(
    app,
    { title: "The last train", thumbnail, options: { max_height: 720 } },
    { warnings: [{ code: "gap", message: "the audio has nothing to play from 3.1 to 4.9 s" }] },
  );
  await addEnded(app, { title: "Cooking for four" }, { state: "failed", error: protectedByDrm });
  await addEnded(app, { title: "A walk in winter" }, { state: "canceled" });
  await addRunning(app, { title: "How a bridge is built", thumbnail });
  await addRunning(
    app,
    { title: "A file of unknown size", options: { audio_only: true } },
    { total_bytes: null, eta: null },
  );
  await addRunning(app, { title: "Almost done" }, { stage: "processing" });
  await addRunning(app, { title: "Just begun" }, { stage: "resolving", downloaded_bytes: null });
  const live = { is_live: true, downloaded_bytes: 210_000_000, total_bytes: null, eta: null };
  await addRunning(app, { title: "The harbour, live", thumbnail }, live);
  const ending = await addRunning(app, { title: "The concert, live" }, live);
  await app.store.update(ending.id, { finish_requested: true });
  await addEnded(
    app,
    { title: "A site that is down" },
    { state: "queued", error: unreachable, retry_at: new Date(Date.now() + 60_000).toISOString() },
  );
  await addQueued(app, { title: "Not looked at yet" });
}

async function openPicture(): Promise<string> {
  const picture = resource("image/png", landscape([86, 156, 214], [250, 214, 165], [24, 78, 119]));
  const site = await startTestSite(new Map([["picture.png", picture]]));
  return site.url("picture.png");
}

function imageOf({ page }: Tab) {
  return page.locator(".thumbnail img");
}

/** Returns how many images the page shows. */
export function loadedImages(page: Page): Promise<number> {
  return page.evaluate("[...document.images].filter(({ naturalWidth }) => naturalWidth > 0).length");
}

/** A collection whose members are in several states. */
async function addTrains(app: PageApp): Promise<void> {
  const { store } = app;
  const { id } = await addCollection(app, { title: "The last train" }, [
    "Part 1",
    "Part 2",
    "Part 3",
    "Part 4",
    "Part 5",
  ]);
  const [first, second, third] = (await store.list({ limit: 9, parent: id })).tasks;
  for (const each of [first, second, third]) await store.update(each!.id, { state: "running" });
  await store.update(first!.id, { state: "succeeded" });
  await store.update(second!.id, { state: "failed", error: unreachable });
  await store.update(third!.id, { progress: halfway });
}
