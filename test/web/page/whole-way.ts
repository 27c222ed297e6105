import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import type { OpenTab } from "../browser.ts";
import { filmTitle, openFilmSite } from "./film-page.ts";
import { openService } from "./restartable.ts";

export function wholeWay(openTab: OpenTab): void {
  it("leads from a pasted address to a played, saved and deleted file, through a reload and a SIGKILL", async () => {
    const film = await openFilmSite();
    film.hold(3);
    const service = await openService();
    const tab = await openTab(service.url());
    const { page } = tab;
    await page.getByText("Nothing here yet.").waitFor();
    await tab.paste(film.url);
    const found = page.getByRole("dialog", { name: filmTitle });
    await found.getByText("Film club").waitFor();
    await found.getByRole("button", { name: /^Download 360p, about \d+ kB$/ }).click();
    await found.waitFor({ state: "detached" });

    const row = page.getByRole("article", { name: filmTitle });
    const bar = row.getByRole("progressbar", { name: filmTitle });
    await bar.waitFor();
    const atLeast = await untilProgress(page, 20_000);

    await page.reload();
    await untilProgress(page, atLeast);

    tab.expectFailures(/net::ERR_/);
    await service.kill();
    await page.getByText("The connection is lost. Reconnecting…").waitFor();
    expect(await shownProgress(page)).toBeGreaterThanOrEqual(atLeast);
    await service.start();
    await page.getByText("The connection is lost.").waitFor({ state: "detached" });
    await untilProgress(page, atLeast);
    film.release();

    const part = page.waitForResponse((response) => response.url().endsWith("/file") && response.status() === 206);
    await row.getByRole("button", { name: "Play", exact: true }).click();
    await playFromTheMiddle(page);
    expect((await part).headers()["content-range"]).toMatch(/^bytes \d+-\d+\/\d+$/);

    const downloading = page.waitForEvent("download");
    await row.getByRole("link", { name: "Save" }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toBe(`${filmTitle}.mp4`);
    const saved = await readFile(await download.path());
    const { tasks } = (await (await fetch(`${service.url()}/tasks/`)).json()) as {
      tasks: { id: string; file: { height: number } }[];
    };
    const [task] = tasks;
    const served = await fetch(`${service.url()}/tasks/${task?.id}/file`);
    expect(saved.equals(Buffer.from(await served.arrayBuffer()))).toBe(true);
    // The small rendition, which the playlist says is of 360 lines, has 54.
    expect(task?.file.height).toBe(54);

    await row.getByText("More", { exact: true }).click();
    await row.getByRole("button", { name: "Delete", exact: true }).click();
    const question = page.getByRole("dialog", { name: `Delete “${filmTitle}” and its file?` });
    await question.getByRole("button", { name: "Delete" }).click();
    await row.waitFor({ state: "detached" });
    await page.getByText("Nothing here yet.").or(page.getByText("No downloads in this state.")).waitFor();
    expect((await fetch(`${service.url()}/tasks/${task?.id}/file`)).status).toBe(404);
  });
}

interface Media {
  duration: number;
  currentTime: number;
  muted: boolean;
  play(): Promise<void>;
}

async function playFromTheMiddle(page: Page): Promise<void> {
  const video = page.locator("video");
  await expect.poll(() => video.evaluate((media: Media) => media.duration)).toBeCloseTo(6, 1);
  await video.evaluate(async (media: Media) => {
    media.muted = true;
    media.currentTime = media.duration / 2;
    await media.play();
  });
  await expect.poll(() => video.evaluate((media: Media) => media.currentTime)).toBeGreaterThan(3.1);
}

/** Returns how many bytes the page says are there; 0: it does not say. */
async function shownProgress(page: Page): Promise<number> {
  const value = await page.getByRole("progressbar", { name: filmTitle }).getAttribute("value");
  return Number(value ?? 0);
}

/** Waits until the page says that so many bytes are there; returns how many. A run that begins again says nothing at first. */
async function untilProgress(page: Page, bytes: number): Promise<number> {
  let shown = 0;
  await expect.poll(async () => (shown = await shownProgress(page))).toBeGreaterThanOrEqual(bytes);
  return shown;
}
