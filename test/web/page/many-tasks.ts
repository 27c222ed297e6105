import type { Route } from "playwright-core";
import { expect, it } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import type { OpenTab } from "../browser.ts";
import { openApp } from "./open-app.ts";
import { addAll } from "./states.ts";
import { addDone, addEnded, addQueued, protectedByDrm, unreachable } from "./stored-tasks.ts";

export function manyTasks(openTab: OpenTab): void {
  it("shows 50 tasks, and older ones when asked, at the first of which the keyboard goes on", async () => {
    const app = await openApp();
    for (let n = 0; n < 55; n++) {
      const at = new Date(Date.UTC(2026, 0, 1, 0, 0, n));
      await app.store.create(newTask(`https://video.example.com/watch/${n}`, {}, at));
    }
    const { page } = await openTab(app.url);
    const rows = page.getByRole("article");
    await expect.poll(() => rows.count()).toBe(50);
    await page.getByRole("button", { name: "Older" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => rows.count()).toBe(55);
    const focused = "[...document.querySelectorAll('article')].indexOf(document.activeElement)";
    await expect.poll(() => page.evaluate(focused)).toBe(50);
    expect(await page.getByRole("button", { name: "Older" }).count()).toBe(0);
  });

  it("cancels all tasks that wait or run, those that are not listed too, after a question", async () => {
    const app = await openApp();
    for (let n = 0; n < 60; n++) await addQueued(app, { title: `Film ${n}` });
    const tab = await openTab(app.url);
    const { page } = tab;
    await page.getByRole("button", { name: "Cancel all" }).click();
    const question = page.getByRole("dialog", { name: "Cancel 60 downloads?" });
    // Half a second after the click on a busy machine.
    tab.expectShifts();
    await question.getByRole("button", { name: "Cancel downloads" }).click();
    await expect.poll(async () => (await app.store.list({ limit: 200, state: "queued" })).tasks.length).toBe(0);
    await expect.poll(() => page.getByText("Canceled.").count()).toBeGreaterThanOrEqual(50);
  });

  it("can cancel all while a task waits or runs, shown or not, and moves nothing when it cannot", async () => {
    const app = await openApp();
    await addDone(app, { title: "Done" });
    const { page } = await openTab(app.url);
    const cancelAll = page.getByRole("button", { name: "Cancel all" });
    await cancelAll.waitFor();
    expect(await cancelAll.isDisabled()).toBe(true);
    const place = await cancelAll.boundingBox();
    await page.getByRole("combobox", { name: "Show" }).selectOption("Done");
    const { id } = await addQueued(app, { title: "Waits" });
    await expect.poll(() => cancelAll.isEnabled()).toBe(true);
    expect(await page.getByRole("article").count()).toBe(1);
    expect(await cancelAll.boundingBox()).toEqual(place);
    await app.store.claim({ leaseMs: 60_000 });
    await page.getByText("1 running").waitFor();
    expect(await cancelAll.isEnabled()).toBe(true);
    await app.store.update(id, { state: "canceled" });
    await expect.poll(() => cancelAll.isDisabled()).toBe(true);
  });

  it("retries the chosen tasks that have failed or were canceled, and neither others nor lists", async () => {
    const app = await openApp();
    const done = await addDone(app, { title: "Done" });
    await addEnded(app, { title: "Down" }, { state: "failed", error: unreachable });
    await addEnded(app, { title: "Stopped" }, { state: "canceled" });
    const isList = { code: "playlist", message: "the page is a playlist", retryable: false } as const;
    await addEnded(app, { title: "List" }, { state: "failed", error: isList });
    const tab = await openTab(app.url);
    const { page } = tab;
    const select = page.getByRole("button", { name: "Select", exact: true });
    await select.waitFor();
    const colour = "getComputedStyle(document.querySelector('[aria-pressed]')).backgroundColor";
    const before = await page.evaluate(colour);
    await select.click();
    expect(await page.evaluate(colour)).not.toBe(before);
    await page.getByRole("button", { name: "Select all" }).click();
    await page.getByText("4 selected").waitFor();
    await page.getByRole("button", { name: "Retry selected" }).click();
    await page.getByText("0 selected").waitFor();
    const { tasks } = await app.store.list({ limit: 9 });
    expect(tasks.map(({ state }) => state).toSorted()).toEqual(["failed", "queued", "queued", "succeeded"]);
    expect(await app.store.get(done.id)).toEqual(done);
  });

  it("deletes the chosen tasks with their files, after a question that Escape answers with no", async () => {
    const app = await openApp();
    const kept = await addDone(app, { title: "Kept" });
    await addDone(app, { title: "Gone" });
    const failure = { state: "failed", error: protectedByDrm } as const;
    await addEnded(app, { title: "Gone too" }, failure);
    const tab = await openTab(app.url);
    const { page } = tab;
    await page.getByRole("button", { name: "Select", exact: true }).click();
    for (const name of ["Gone", "Gone too"]) {
      const row = page.getByRole("article", { name, exact: true });
      await row.getByRole("checkbox", { name: "Select" }).check();
    }
    const show = page.getByRole("combobox", { name: "Show" });
    await show.selectOption("Failed");
    await page.getByText("1 selected").waitFor();
    await show.selectOption("All");
    await page.getByText("2 selected").waitFor();
    const remove = page.getByRole("button", { name: "Delete selected" });
    const question = page.getByRole("dialog", { name: "Delete 2 downloads and a file?" });
    await remove.click();
    await question.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    expect(await page.getByRole("article").count()).toBe(3);
    await remove.click();
    tab.expectShifts();
    await question.getByRole("button", { name: "Delete" }).click();
    await expect.poll(() => page.getByRole("article").count()).toBe(1);
    expect((await app.store.list({ limit: 200 })).tasks.map(({ id }) => id)).toEqual([kept.id]);
  });

  it("says that there are no tasks in a state once that was read, and shows the others again if it cannot be", async () => {
    const app = await openApp();
    await addQueued(app, { title: "Waits" });
    const tab = await openTab(app.url);
    const { page } = tab;
    tab.expectFailures(/state=failed/);
    tab.expectShifts();
    const asked = Promise.withResolvers<Route>();
    await page.route(/state=failed/, (route) => asked.resolve(route), { times: 1 });
    const show = page.getByRole("combobox", { name: "Show" });
    const nothing = page.getByText("No downloads in this state.");
    await show.selectOption("Failed");
    const route = await asked.promise;
    await page.getByRole("article").waitFor({ state: "detached" });
    expect(await nothing.count()).toBe(0);
    await route.abort();
    await page.getByRole("alert").getByText("The service does not respond.").waitFor();
    await page.getByRole("article").waitFor();
    expect(await show.inputValue()).toBe("");
    await show.selectOption("Failed");
    await nothing.waitFor();
  });

  it("shows only the tasks in the state that is chosen", async () => {
    const app = await openApp();
    await addAll(app);
    const tab = await openTab(app.url);
    tab.expectShifts();
    const { page } = tab;
    const show = page.getByRole("combobox", { name: "Show" });
    const rows = page.getByRole("article");
    for (const [label, count] of Object.entries({
      Done: 2,
      Failed: 1,
      Canceled: 1,
      Running: 6,
      Waiting: 2,
      All: 12,
    })) {
      await show.selectOption(label);
      await expect.poll(async () => [label, await rows.count()]).toEqual([label, count]);
    }
    const ended = page.getByRole("article", { name: "A walk in winter" });
    await ended.getByRole("button", { name: "Retry" }).click();
    await ended.getByText("Waiting.").waitFor();
  });

  it("says what failed, and does nothing twice, when the service refuses an action", async () => {
    const app = await openApp();
    const { id } = await addEnded(app, { title: "Once failed" }, { state: "canceled" });
    // It is far down.
    for (let n = 0; n < 20; n++) await addQueued(app, { title: `Film ${n}` });
    const tab = await openTab(app.url);
    tab.expectShifts();
    const row = tab.page.getByRole("article", { name: "Once failed" });
    await row.getByRole("button", { name: "Retry" }).waitFor();
    tab.expectFailures(/status of 503 .*\/retry/);
    await tab.page.route("**/retry", (route) =>
      route.fulfill({
        status: 503,
        contentType: "application/problem+json",
        json: {
          code: "unavailable",
          detail: "the queue is full: 3 tasks, limit 3 (MAX_QUEUED)",
          retryable: true,
        },
      }),
    );
    await row.getByRole("button", { name: "Retry" }).click();
    const words = "Once failed: The service is not available at the moment. Trying again may help.";
    const alert = tab.page.getByRole("alert").getByText(words);
    await alert.waitFor();
    expect((await alert.boundingBox())?.y).toBeGreaterThanOrEqual(0);
    expect(await app.store.get(id)).toMatchObject({ state: "canceled" });
  });
}
