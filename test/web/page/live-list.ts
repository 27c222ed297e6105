import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import type { OpenTab } from "../browser.ts";
import { widths } from "./inspect.ts";
import { openApp } from "./open-app.ts";
import { addAll } from "./states.ts";
import { addQueued, addRunning, halfway } from "./stored-tasks.ts";

export function theListIsLive(openTab: OpenTab): void {
  it.each(widths)("shows progress and its end without moving anything, %i px wide", async (width) => {
    const app = await openApp();
    const one = await addRunning(app, { title: "One film" });
    const other = await addRunning(app, { title: "Another film" });
    const { page } = await openTab(app.url, { viewport: { width, height: 1_600 } });
    // Which is first is not known: they may be of the same millisecond.
    const rows = page.getByRole("article");
    const title = (await rows.first().getByRole("link").textContent()) ?? "";
    const { id } = title === "One film" ? one : other;
    const row = page.getByRole("article", { name: title });
    const place = await rows.last().boundingBox();
    for (let n = 1; n <= 8; n++) {
      const bytes = 2_000_000 * n - 999_000;
      const progress = {
        ...halfway,
        downloaded_bytes: bytes,
        speed: 37 ** n / 7,
        eta: 90 * (8 - n),
      };
      await app.store.update(id, { progress });
      const bar = row.getByRole("progressbar", { name: title });
      await expect.poll(() => bar.getAttribute("value")).toBe(`${Math.min(bytes, 15_300_000)}`);
    }
    await app.store.update(id, { progress: { ...halfway, stage: "processing" } });
    await row.getByText("Writing the file").waitFor();
    const file = {
      name: "film.mp4",
      mime_type: "video/mp4",
      size: 15_300_000,
      sha256: "0".repeat(64),
      duration: 61,
      width: 1280,
      height: 720,
      url: `/tasks/${id}/file`,
      warnings: [],
    };
    await app.store.update(id, { state: "succeeded", file });
    await row.getByText("15.3 MB · 1280 × 720 · 1:01").waitFor();
    await page.getByRole("status").getByText(`${title}: Done.`).waitFor();
    expect(await rows.last().boundingBox()).toEqual(place);
  });

  it("is live in six tabs, of which only the visible one holds a stream", async () => {
    const app = await openApp({ maxEventStreams: 2 });
    const { id } = await addRunning(app, { title: "A film" });
    const { page } = await openTab(app.url);
    await page.getByText("3.3 of 15.3 MB").waitFor();
    const pages = [page];
    while (pages.length < 6) {
      await setHidden(pages.at(-1) ?? page, true);
      const another = await page.context().newPage();
      await another.goto(app.url);
      await another.getByText("3.3 of 15.3 MB").waitFor();
      pages.push(another);
    }
    for (const [n, each] of pages.entries()) {
      for (const other of pages) await setHidden(other, other !== each);
      const bytes = 4_000_000 + n * 1_000_000;
      await app.store.update(id, { progress: { ...halfway, downloaded_bytes: bytes } });
      await each.getByText(`${4 + n} of 15.3 MB`).waitFor();
    }
  });

  it("says that the connection is lost, keeps what it shows, and goes on when it is back", async () => {
    const app = await openApp();
    await addAll(app);
    const tab = await openTab(app.url);
    const { page } = tab;
    tab.expectShifts();
    const words = page.getByRole("status").getByText("The connection is lost. Reconnecting…");
    const rows = page.getByRole("article");
    await rows.first().waitFor();
    const count = await rows.count();
    tab.expectFailures(/net::ERR_/);
    await page.context().setOffline(true);
    app.app.server.closeAllConnections();
    await words.waitFor();
    expect(await rows.count()).toBe(count);
    await addQueued(app, { title: "Added meanwhile" });
    await page.context().setOffline(false);
    await words.waitFor({ state: "detached" });
    await expect.poll(() => rows.count()).toBe(count + 1);
  });

  it("says that the connection is lost if the list does not come, and reads it again", async () => {
    const app = await openApp();
    const { page } = await openTab(app.url, { hasClock: true });
    const nothing = page.getByText("Nothing here yet.");
    await nothing.waitFor();
    const asked = Promise.withResolvers<void>();
    await page.route(/tasks\/\?limit=/, () => asked.resolve(), { times: 1 });
    await page.reload();
    await asked.promise;
    const lost = page.getByText("The connection is lost. Reconnecting…");
    await page.clock.fastForward(45_000);
    await lost.waitFor();
    await page.clock.fastForward(5_000);
    await nothing.waitFor();
    await lost.waitFor({ state: "detached" });
  });

  it("waits as long as the service says when it has too many streams", async () => {
    const app = await openApp({ maxEventStreams: 1 });
    const first = await openTab(app.url);
    await first.page.getByText("Nothing here yet.").waitFor();
    const second = await openTab(app.url, { hasClock: true });
    second.expectFailures(/status of 429 .*tasks\/events/);
    await second.page.getByText("The connection is lost. Reconnecting…").waitFor();
    const { headers } = await fetch(`${app.url}tasks/events`);
    const waitMs = 1_000 * Number(headers.get("retry-after"));
    await first.page.close();
    await second.page.clock.fastForward(waitMs - 2_000);
    expect(await second.page.getByText("The connection is lost.").isVisible()).toBe(true);
    await second.page.clock.fastForward(2_000);
    await second.page.getByText("Nothing here yet.").waitFor();
    await second.page.getByText("The connection is lost.").waitFor({ state: "detached" });
  });

  it("ends a live recording as asked: keeps it, or discards it", async () => {
    const app = await openApp();
    const live = { is_live: true, downloaded_bytes: 210_000_000, total_bytes: null, eta: null };
    const kept = await addRunning(app, { title: "Kept" }, live);
    const discarded = await addRunning(app, { title: "Discarded" }, live);
    const { page, expectShifts } = await openTab(app.url);
    const row = (name: string) => page.getByRole("article", { name });
    // Those that are left move to where the first one was.
    expectShifts("<button ");
    await row("Kept").getByRole("button", { name: "Stop and keep" }).click();
    await row("Kept").getByText("Ending the recording · 210 MB").waitFor();
    await row("Discarded").getByRole("button", { name: "Discard" }).click();
    await row("Discarded").getByText("Canceled.").waitFor();
    expect(await app.store.get(kept.id)).toMatchObject({
      state: "running",
      finish_requested: true,
    });
    expect(await app.store.get(discarded.id)).toMatchObject({ state: "canceled" });
  });
}

/** Tells the page that another tab is in front of it or not, as automated tabs are always visible. */
async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(
    `if (document.hidden !== ${isHidden}) {
      Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }`,
  );
}
