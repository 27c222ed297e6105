import { expect, it } from "vitest";
import { ServiceError } from "../../../src/errors.ts";
import { createMemoryStore } from "../../../src/stores/memory.ts";
import type { OpenTab } from "../browser.ts";
import { filmPage, playlistPage } from "./found-pages.ts";
import { openApp, type PageApp } from "./open-app.ts";

const address = "https://video.example.com/watch/42";

async function storedUrls({ store }: PageApp): Promise<string[]> {
  return (await store.list({ limit: 200 })).tasks.map(({ url }) => url).toSorted();
}

export function findingPages(openTab: OpenTab): void {
  it.each([
    ["/?url=", `?url=${encodeURIComponent(address)}`],
    [
      "a share with the address in its text",
      `?title=A+film&text=${encodeURIComponent(`See ${address}`)}&url=`,
    ],
  ])(
    "only looks at the page of %s: nothing is downloaded before somebody asks for it",
    async (_, path) => {
      const app = await openApp();
      app.pages.set(address, filmPage(address));
      const { page } = await openTab(app.url, { path });
      const dialog = page.getByRole("dialog", { name: "An evening walk by the sea" });
      await dialog.getByRole("button", { name: "Download 360p, 5.1 MB" }).waitFor();
      expect(await storedUrls(app)).toEqual([]);
      await dialog.getByRole("button", { name: "Close" }).click();
      await dialog.waitFor({ state: "detached" });
      expect(new URL(page.url()).search).toBe("");
      expect(await storedUrls(app)).toEqual([]);
    },
  );

  it("asks before it downloads several pasted addresses, and leaves out those that are not chosen", async () => {
    const app = await openApp();
    const tab = await openTab(app.url);
    const addresses = [1, 2, 3].map((n) => `https://video.example.com/watch/part-${n}`);
    await tab.paste(addresses.join(" "));
    const dialog = tab.page.getByRole("dialog", { name: "3 pages" });
    await dialog
      .getByRole("checkbox", { name: "https://video.example.com/watch/part-2" })
      .uncheck();
    expect(await storedUrls(app)).toEqual([]);
    await dialog.getByRole("combobox", { name: "Quality" }).selectOption("At most 720p");
    await dialog.getByRole("button", { name: "Download 2" }).click();
    await dialog.waitFor({ state: "detached" });
    await tab.page.getByText("Added: 2 of 2 videos").waitFor();
    expect(await storedUrls(app)).toEqual([addresses[0], addresses[2]]);
    const { tasks } = await app.store.list({ limit: 200 });
    expect(tasks.map(({ options }) => options)).toEqual([{ max_height: 720 }, { max_height: 720 }]);
    await expect.poll(() => tab.page.getByRole("article").count()).toBe(2);
  });

  it("lets somebody choose from a playlist, and look at one of its videos first", async () => {
    const app = await openApp();
    app.pages.set(address, playlistPage(address, 3));
    const part = "https://video.example.com/watch/part-2";
    app.pages.set(part, filmPage(part, { title: "The second part" }));
    const tab = await openTab(app.url);
    await tab.paste(address);
    const list = tab.page.getByRole("dialog", { name: "The last train" });
    expect(await list.getByRole("button", { name: "Download 0" }).isDisabled()).toBe(true);
    await list.getByRole("button", { name: "Look at The last train, part 2" }).click();
    await tab.page.getByRole("dialog", { name: "The second part" }).waitFor();
    await tab.page.getByRole("button", { name: "Close" }).click();
    await tab.paste(address);
    await list.getByRole("checkbox", { name: "All" }).check();
    await list.getByRole("button", { name: "Download 3" }).click();
    await expect.poll(async () => (await storedUrls(app)).length).toBe(3);
  });

  it("stops looking when asked, and the service stops reading", async () => {
    const app = await openApp();
    const stopped = Promise.withResolvers<void>();
    app.pages.set(address, ({ signal }) => {
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => {
        stopped.resolve();
        reject(signal.reason);
      });
      return promise;
    });
    const tab = await openTab(app.url);
    await tab.paste(address);
    await tab.page.getByRole("button", { name: "Stop" }).click();
    await stopped.promise;
    await tab.page.getByRole("dialog").waitFor({ state: "detached" });
  });

  it("tries again when asked: after too many requests, and when no further task fits", async () => {
    const store = createMemoryStore({ maxQueued: 1 });
    const app = await openApp({ store });
    let tries = 0;
    app.pages.set(address, async () => {
      if (++tries > 1) return filmPage(address);
      throw new ServiceError("too_many_requests", "64 pages are read, which is the limit", {
        retryAfterS: 1,
      });
    });
    const tab = await openTab(app.url);
    tab.expectFailures(/status of 429 .*info\?url=/);
    await tab.paste(address);
    const failed = tab.page.getByRole("dialog", { name: "That did not work" });
    await failed
      .locator("p.failure", {
        hasText: "There are too many requests at the moment. Trying again may help.",
      })
      .waitFor();
    await failed.getByRole("button", { name: "Try again" }).click();
    await tab.page.getByRole("button", { name: "Download the best" }).click();
    await tab.page.getByRole("article").waitFor();
    tab.expectFailures(/status of 503 .*tasks\//);
    await tab.paste(address);
    await tab.page.getByRole("button", { name: "Download the best" }).click();
    await failed
      .locator("p.failure", {
        hasText: "The service is not available at the moment. Trying again may help.",
      })
      .waitFor();
    await tab.page.getByRole("button", { name: "Close" }).click();
    await tab.page.getByRole("button", { name: "Cancel", exact: true }).click();
    await tab.page.getByText("Canceled.").waitFor();
  });
}
