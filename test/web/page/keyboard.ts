import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { ServiceError } from "../../../src/model/errors.ts";
import { createMemoryStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { createTaskEvents } from "../../../src/feed/task-events.ts";
import type { OpenTab } from "../browser.ts";
import { filmPage, playlistPage, richPage } from "./found-pages.ts";
import { openApp } from "./open-app.ts";
import { addDone, addQueued } from "./stored-tasks.ts";

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

  it("opens and closes what tells how to get here, and comes back to its button", async () => {
    const { page } = await openTab((await openApp()).url);
    await tabTo(page, "button", "Add to browser");
    await page.keyboard.press("Enter");
    await tabTo(page, "link", "Open in Unreel");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Add to browser");
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

  it("keeps the focus in the dialog while what it shows changes", async () => {
    const app = await openApp();
    const picture = "https://video.example.com/picture.png";
    const gate = Promise.withResolvers<void>();
    let tries = 0;
    app.pages.set(address, async () => {
      if ((tries += 1) === 1) throw new ServiceError("upstream_unreachable", "no answer");
      await gate.promise;
      return { ...richPage(address, picture), thumbnails: [] };
    });
    const tab = await openTab(app.url);
    const { page } = tab;
    tab.expectFailures(/status of 502 .*info\?url=/);
    await tabTo(page, "textbox", "Address of a page with a video");
    await page.keyboard.type(address);
    await page.keyboard.press("Enter");
    await tabTo(page, "button", "Try again");
    await page.keyboard.press("Enter");
    await expect.poll(() => focusedName(page)).toBe("Reading the page…");
    gate.resolve();
    await expect.poll(() => focusedName(page)).toMatch(/^How the old bridge/);
    await tabTo(page, "button", "Show 4 more formats");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate("document.activeElement.closest('tr').rowIndex")).toBe(13);
  });

  it("stays on the button that downloads until the task is there", async () => {
    const store = createMemoryStore({ events: createTaskEvents() });
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const create: typeof store.create = async (...given) => {
      asked.resolve();
      await gate.promise;
      return store.create(...given);
    };
    const app = await openApp({ store: { ...store, create } });
    app.pages.set(address, filmPage(address));
    const { page } = await openTab(app.url, { path: `?url=${encodeURIComponent(address)}` });
    await tabTo(page, "button", "Download the best");
    await page.keyboard.press("Enter");
    await asked.promise;
    await expect.poll(() => page.getByRole("button", { name: "Download the best" }).isDisabled()).toBe(true);
    expect(await focusedName(page)).toBe("Download the best");
    gate.resolve();
    await expect.poll(() => focusedName(page)).toBe(`Added: ${title}`);
  });

  it("goes on at the first of the further videos of a list, at the heading after the dialog, and stays in the list of downloads", async () => {
    const app = await openApp();
    app.pages.set(address, async ({ entriesCursor }) => playlistPage(address, 300, { entriesCursor }));
    const { page, expectShifts } = await openTab(app.url, { path: `?url=${encodeURIComponent(address)}` });
    // Further rows come above it.
    expectShifts("<details>");
    const more = page.getByRole("button", { name: "Show more" });
    await more.focus();
    await page.keyboard.press("Enter");
    await more.waitFor({ state: "detached" });
    await expect.poll(() => focusedName(page)).toMatch(/^The last train, part 201 /);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await focusedName(page)).toBe("Find a video");

    await addQueued(app, { title });
    await page.getByText("Waiting.", { exact: true }).waitFor();
    await tabTo(page, "button", "Cancel all");
    await page.keyboard.press("Enter");
    await tabTo(page, "button", "Cancel download");
    await page.keyboard.press("Enter");
    await page.getByText("Canceled.", { exact: true }).waitFor();
    expect(await focusedName(page)).toBe("Cancel all");
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
    `((element) => [...(element.labels?.length > 0 ? element.labels : [element])].map((each) => each.textContent).join("") + (element.value ?? ""))(document.activeElement)`,
  );
}
