import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { membersOf } from "../../contracts/task-store/collections.ts";
import { pageInfo } from "../../page-info.ts";
import type { OpenTab } from "../browser.ts";
import { playlistPage } from "./found-pages.ts";
import { openApp } from "./open-app.ts";
import { addCollection, addEnded, endWithFilm, unreachable } from "./stored-tasks.ts";

const address = "https://video.example.com/watch/42";
const part = (n: number) => `https://video.example.com/watch/part-${n}`;
const titles = ["Part 1", "Part 2", "Part 3"];

export function collections(openTab: OpenTab): void {
  it("lets somebody choose 5 of 300 videos of a list, which is read further when asked for", async () => {
    const app = await openApp();
    app.pages.set(address, async ({ entriesCursor }) => playlistPage(address, 300, { entriesCursor }));
    const tab = await openTab(app.url);
    await tab.paste(address);
    const list = tab.page.getByRole("dialog", { name: "The last train" });
    const box = (n: number) => list.getByRole("checkbox", { name: new RegExp(`part ${n} `) });
    await box(3).check();
    await box(5).click({ modifiers: ["Shift"] });
    // Further rows come above it.
    tab.expectShifts("<details>");
    await list.getByRole("button", { name: "Show more" }).click();
    await box(201).check();
    await box(300).check();
    await list.getByRole("button", { name: "Show more" }).waitFor({ state: "detached" });
    await list.getByRole("combobox", { name: "Quality" }).selectOption("At most 720p");
    await list.getByRole("checkbox", { name: "With subtitles" }).check();
    await list.getByRole("button", { name: "Download 5" }).click();
    await list.waitFor({ state: "detached" });
    const { tasks } = await app.store.list({ limit: 9 });
    expect(tasks).toMatchObject([
      { url: address, options: { max_height: 720, subtitles: true, entries: [3, 4, 5, 201, 300].map(part) } },
    ]);
  });

  it("takes a whole list without reading it, and no longer once a video is left out", async () => {
    const app = await openApp();
    app.pages.set(address, async ({ entriesCursor }) => playlistPage(address, 300, { entriesCursor }));
    const tab = await openTab(app.url);
    await tab.paste(address);
    const list = tab.page.getByRole("dialog", { name: "The last train" });
    await list.getByRole("checkbox", { name: "All 300" }).check();
    await list.getByRole("button", { name: "Download 300" }).waitFor();
    await list.getByRole("checkbox", { name: /part 7 / }).uncheck();
    await list.getByRole("button", { name: "Download 199" }).waitFor();
    expect(await list.getByRole("checkbox", { name: "All 300" }).isChecked()).toBe(false);
    await list.getByRole("checkbox", { name: "All 300" }).check();
    await list.getByRole("button", { name: "Download 300" }).click();
    await list.waitFor({ state: "detached" });
    const { tasks } = await app.store.list({ limit: 9 });
    expect(tasks.map(({ options }) => options)).toEqual([{ entries: "all" }]);
  });

  it("leads from a download that failed, as its page is a list, to that list", async () => {
    const app = await openApp();
    const error = { code: "playlist", message: "the page is a playlist", retryable: false } as const;
    const { url } = await addEnded(app, { title: "The last train" }, { state: "failed", error });
    app.pages.set(url, playlistPage(url, 3));
    const { page, expectShifts } = await openTab(app.url);
    const row = page.getByRole("article", { name: "The last train" });
    await row.getByText("This is a list: choose what to download of it.").waitFor();
    expect(await row.getByRole("button", { name: "Retry" }).count()).toBe(0);
    await row.getByRole("link", { name: "Show the list" }).click();
    const list = page.getByRole("dialog", { name: "The last train" });
    await list.getByRole("checkbox", { name: "All 3" }).check();
    // The new task comes above the one that failed.
    expectShifts();
    await list.getByRole("button", { name: "Download 3" }).click();
    await list.waitFor({ state: "detached" });
    const { tasks } = await app.store.list({ limit: 9 });
    expect(tasks.map((task) => [task.url, task.options])).toEqual([
      [url, { entries: "all" }],
      [url, {}],
    ]);
  });

  it("shows a collection as one row that opens, follows its videos, and retries one of them", async () => {
    const app = await openApp();
    const { id } = await addCollection(app, { title: "The last train" }, titles);
    const { page } = await openTab(app.url);
    const row = page.getByRole("article", { name: "The last train" });
    await row.getByText("0 of 3 done · 3 waiting").waitFor();
    expect(await page.getByRole("article").count()).toBe(1);
    await page.getByText("Entries of the list (3)").click();
    await expect.poll(() => page.getByRole("article").count()).toBe(4);
    const [first, second] = await membersOf(app, id);
    await app.store.update(first!.id, { state: "running" });
    await row.getByText("0 of 3 done · 1 running · 2 waiting").waitFor();
    await app.store.update(first!.id, { state: "failed", error: unreachable });
    await row.getByText("0 of 3 done · 2 waiting · 1 failed").waitFor();
    await app.store.update(second!.id, { state: "running" });
    const member = page.getByRole("article").filter({ hasText: "The site cannot be reached." });
    await member.getByRole("button", { name: "Retry" }).click();
    await row.getByText("0 of 3 done · 1 running · 2 waiting").waitFor();
    expect((await app.store.get(first!.id))?.state).toBe("queued");
  });

  it("saves the videos of a collection that are done as one archive", async () => {
    const app = await openApp();
    const { id } = await addCollection(app, { title: "The last train" }, titles);
    const { page, expectShifts } = await openTab(app.url);
    await page.getByText("Entries of the list (3)").click();
    const save = page.getByRole("link", { name: "Save all as ZIP" });
    expect(await save.count()).toBe(0);
    // The link comes above the list.
    expectShifts('<ul class="stack">');
    const [first] = await membersOf(app, id);
    await app.store.update(first!.id, { state: "running", info: pageInfo({ title: "Part 1" }) });
    await endWithFilm(app, { id: first!.id, title: "Part 1" });
    const button = (await save.boundingBox())!;
    const entry = await page.getByRole("article").filter({ hasText: "Part 1" }).boundingBox();
    expect(entry?.y).toBeGreaterThanOrEqual(button.y + button.height + 8);
    const downloading = page.waitForEvent("download");
    await save.click();
    const saved = await readFile(await (await downloading).path());
    const served = await fetch(new URL(`tasks/${id}/files.zip`, app.url));
    expect(saved.equals(Buffer.from(await served.arrayBuffer()))).toBe(true);
    expect(saved.includes("Part 1")).toBe(true);
  });

  it("cancels and deletes a whole collection only if somebody says so", async () => {
    const app = await openApp();
    const { id } = await addCollection(app, { title: "The last train" }, titles);
    const { page } = await openTab(app.url);
    const row = page.getByRole("article", { name: "The last train" });
    await row.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "No" }).click();
    expect((await app.store.get(id))?.state).toBe("running");
    await row.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel download" }).click();
    await row.getByText("0 of 3 done · 3 canceled").waitFor();
    await row.getByRole("button", { name: "Delete" }).click();
    await page.getByText("Delete “The last train” and its downloads?").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("Nothing here yet.").waitFor();
    expect(await app.store.get(id)).toBeUndefined();
  });
}
