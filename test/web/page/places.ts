import { expect, it } from "vitest";
import { startSubPath } from "../../http/sub-path.ts";
import type { OpenTab } from "../browser.ts";
import { filmPage } from "./found-pages.ts";
import { openApp } from "./open-app.ts";
import { addDone } from "./stored-tasks.ts";

const address = "https://video.example.com/watch/42";

export function placesOfThePage(openTab: OpenTab): void {
  it("works below a path of a proxy: list, feed, look, download, play, save", async () => {
    const app = await openApp();
    app.pages.set(address, filmPage(address));
    await addDone(app, { title: "A film" });
    const { port } = new URL(app.url);
    const tab = await openTab((await startSubPath(port, "/some/path/")).href);
    const { page } = tab;
    const downloading = page.waitForEvent("download");
    await page.getByRole("link", { name: "Save" }).click();
    expect((await downloading).suggestedFilename()).toBe("A film.mp4");
    await page.getByRole("button", { name: "Play" }).click();
    await expect
      .poll(() => page.locator("video").evaluate(({ duration }: { duration: number }) => duration))
      .toBeCloseTo(6, 1);
    await tab.paste(address);
    // The film moves down for the new one, and up again.
    tab.expectShifts();
    await page.getByRole("button", { name: "Download 360p, 5.1 MB" }).click();
    await page.getByText("Added: An evening walk by the sea").waitFor();
    await expect.poll(() => page.getByRole("article").count()).toBe(2);
    const [task] = (await app.store.list({ limit: 1 })).tasks;
    await app.store.delete(task?.id ?? "");
    await expect.poll(() => page.getByRole("article").count()).toBe(1);
  });

  it("says that it needs JavaScript where there is none", async () => {
    const app = await openApp();
    const { page } = await openTab(app.url, { javaScriptEnabled: false });
    expect(await page.locator("noscript").innerText()).toContain("This page needs JavaScript.");
    await page.getByRole("link", { name: "docs" }).waitFor();
  });
}
