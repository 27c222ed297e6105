import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import type { OpenTab } from "../browser.ts";
import { filmPage } from "./found-pages.ts";
import { openApp } from "./open-app.ts";
import { addDone } from "./stored-tasks.ts";

const address = "https://video.example.com/watch/42";
const title = "An evening walk by the sea";

export function keyboardAlone(openTab: OpenTab): void {
  it("is enough for the whole way, by names that screen readers say", async () => {
    const app = await openApp();
    app.pages.set(address, filmPage(address));
    const { page } = await openTab(app.url);
    await page.getByText("Nothing here yet.").waitFor();

    await tabTo(page, "textbox", "Address of a page with a video");
    await page.keyboard.type(address);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: title }).waitFor();
    await tabTo(page, "button", "Download 360p, 5.1 MB");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expect.poll(() => focusedName(page)).toBe(`Added: ${title}`);

    const [task] = (await app.store.list({ limit: 1 })).tasks;
    expect(task).toMatchObject({ options: { format_id: "360" }, state: "queued" });
    await tabTo(page, "button", "Cancel");
    await page.keyboard.press("Space");
    await page.getByText("Canceled.", { exact: true }).waitFor();
    await tabTo(page, "button", "Retry");
    await page.keyboard.press("Space");
    await page.getByText("Waiting.", { exact: true }).waitFor();
    await app.store.delete(task?.id ?? "");
    await page.getByRole("article").waitFor({ state: "detached" });

    await addDone(app, { title });
    await page.getByRole("article", { name: title }).waitFor();
    await tabTo(page, "button", "Play");
    await page.keyboard.press("Enter");
    await page.locator("video").waitFor();
    await tabTo(page, "link", "Save");
    const downloading = page.waitForEvent("download");
    await page.keyboard.press("Enter");
    expect((await downloading).suggestedFilename()).toBe(`${title}.mp4`);
    await page.keyboard.press("Tab");
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("More");
    await page.keyboard.press("Enter");
    await tabTo(page, "button", "Copy curl command");
    await page.keyboard.press("Enter");
    await expect.poll(() => focusedName(page)).toMatch(/^Cop(y this|ied): curl -fOJ 'http/);
    await tabTo(page, "button", "Delete");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await tabTo(page, "button", "Delete");
    await page.keyboard.press("Enter");
    await page.getByRole("article").waitFor({ state: "detached" });
    await expect.poll(() => focusedName(page)).toBe("Downloads");
  });

  it("downloads the best at once with Ctrl+Enter", async () => {
    const app = await openApp();
    const { page } = await openTab(app.url);
    await tabTo(page, "textbox", "Address of a page with a video");
    await page.keyboard.type(address);
    await page.keyboard.press("Control+Enter");
    await page.getByRole("article").waitFor();
    expect((await app.store.list({ limit: 2 })).tasks).toMatchObject([{ url: address, options: {} }]);
  });
}

/** Presses Tab until the focus is on what has this role and name. */
async function tabTo(page: Page, role: "button" | "link" | "textbox", name: string): Promise<void> {
  const target = page.getByRole(role, { name, exact: true }).last();
  await target.waitFor();
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab");
    const isThere = await target.evaluate((element: Focusable) => element === element.ownerDocument.activeElement);
    if (isThere) return;
  }
  throw new Error(`Tab does not lead to the ${role} "${name}"`);
}

interface Focusable {
  ownerDocument: { activeElement: unknown };
}

/** Returns the text of what has the focus, with the value of a field. */
function focusedName(page: Page): Promise<string> {
  return page.evaluate(
    `((element) => [...(element.labels ?? [element])].map((each) => each.textContent).join("") + (element.value ?? ""))(document.activeElement)`,
  );
}
