import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import type { OpenTab } from "../browser.ts";
import { openApp } from "./open-app.ts";
import { addDone } from "./stored-tasks.ts";

const title = "An evening walk";
const words = /^File removed · \d/;

export function removingFiles(openTab: OpenTab): void {
  it("deletes the file of a download alone, after a question, and says when that was", async () => {
    const app = await openApp();
    const { id } = await addDone(app, { title });
    const { page } = await openTab(app.url);
    const row = page.getByRole("article", { name: title });
    const remove = row.getByRole("button", { name: "Delete file only" });
    const text = `Delete the file of “${title}”? The download stays listed.`;
    const question = page.getByRole("dialog", { name: text });
    await row.getByText("More", { exact: true }).click();
    await remove.click();
    await question.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    expect(await app.store.get(id)).toMatchObject({ removed_at: null });
    await remove.click();
    await question.getByRole("button", { name: "Delete file" }).click();
    await row.getByText(words).waitFor();
    expect(await row.getByRole("button").allTextContents()).toEqual(["Download again", "Delete"]);
    expect(await row.getByRole("link", { name: "Save" }).count()).toBe(0);
    await expect.poll(() => page.evaluate("document.activeElement.tagName")).toBe("ARTICLE");
    expect(await app.store.get(id)).toMatchObject({ state: "succeeded", file: null });
    expect((await fetch(`${app.url}tasks/${id}/file`)).status).toBe(410);
  });

  it("lists the files beside a film, to be saved one by one", async () => {
    const app = await openApp();
    const others = [{ name: "An evening walk & more.de.vtt", content: "WEBVTT\n" }];
    await addDone(app, { title }, {}, others);
    const { page } = await openTab(app.url);
    const row = page.getByRole("article", { name: title });
    await row.getByText("Other files (1)").click();
    const link = row.getByRole("link", { name: "An evening walk & more.de.vtt" });
    const saving = page.waitForEvent("download");
    await link.click();
    const saved = await saving;
    expect(saved.suggestedFilename()).toBe("An evening walk & more.de.vtt");
    expect(await readFile(await saved.path(), "utf8")).toBe("WEBVTT\n");
  });

  it("closes what shows a file that the service removes, and downloads it again if asked to", async () => {
    const app = await openApp();
    const options = { max_height: 720 };
    const { id, url } = await addDone(app, { title, options });
    const tab = await openTab(app.url);
    const { page } = tab;
    tab.expectShifts();
    // The player may ask for the file just after its removal.
    tab.expectFailures(/status of 410 .*\/file/);
    const row = page.getByRole("article", { name: title });
    await row.getByRole("button", { name: "Play" }).click();
    await page.locator("video").waitFor();
    await app.store.update(id, { file: null });
    await row.getByText(words).waitFor();
    await page.locator("video").waitFor({ state: "detached" });
    await row.getByRole("button", { name: "Download again" }).click();
    await page.getByRole("article").nth(1).waitFor();
    const { tasks } = await app.store.list({ limit: 9 });
    expect(tasks).toMatchObject([{ url, options, state: "queued" }, { id }]);
  });

  it("deletes a download whose file was removed without a question", async () => {
    const app = await openApp();
    const { id } = await addDone(app, { title });
    await app.store.update(id, { file: null });
    const { page } = await openTab(app.url);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("Nothing here yet.").waitFor();
    expect(await app.store.get(id)).toBeUndefined();
  });
}
