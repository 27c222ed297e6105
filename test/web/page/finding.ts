import { expect, it } from "vitest";
import { ServiceError } from "../../../src/model/errors.ts";
import { createMemoryStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { createTaskEvents } from "../../../src/feed/task-events.ts";
import type { OpenTab } from "../browser.ts";
import { filmPage, format, playlistPage, richPage } from "./found-pages.ts";
import { openApp, type PageApp } from "./open-app.ts";

const address = "https://video.example.com/watch/42";

async function storedUrls({ store }: PageApp): Promise<string[]> {
  return (await store.list({ limit: 200 })).tasks.map(({ url }) => url).toSorted();
}

export function findingPages(openTab: OpenTab): void {
  it.each([
    ["/?url=", `?url=${encodeURIComponent(address)}`],
    ["a share with the address in its text", `?title=A+film&text=${encodeURIComponent(`See ${address}`)}&url=`],
  ])("only looks at the page of %s: nothing is downloaded before somebody asks for it", async (_, path) => {
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
  });

  it("adds subtitles and languages to a download if their boxes are checked", async () => {
    const app = await openApp();
    app.pages.set(address, { ...richPage(address, ""), thumbnails: [] });
    const { page } = await openTab(app.url, { path: `?url=${encodeURIComponent(address)}` });
    const dialog = page.getByRole("dialog", { name: "How the old bridge" });
    await dialog.getByRole("checkbox", { name: "With subtitles" }).check();
    await dialog.getByRole("checkbox", { name: "With all audio languages" }).check();
    await dialog.getByRole("button", { name: "Download the best" }).click();
    await page.getByText("best format, audio: all, subtitles").waitFor();
    const [task] = (await app.store.list({ limit: 1 })).tasks;
    expect(task?.options).toEqual({ audio_languages: ["all"], subtitles: true });
  });

  it("offers automatic subtitles in a language of the browser, if there are no others", async () => {
    const app = await openApp();
    const listed = (tag: string) => [{ url: `https://media.example.com/${tag}.vtt`, ext: "vtt", name: null }];
    const automatic_captions = { de: listed("de"), "en-orig": listed("en-orig"), en: listed("en"), fr: listed("fr") };
    app.pages.set(address, filmPage(address, { automatic_captions }));
    const { page } = await openTab(app.url, { path: `?url=${encodeURIComponent(address)}` });
    await page.getByRole("checkbox", { name: "With automatic subtitles (English)" }).check();
    await page.getByRole("button", { name: "Download the best" }).click();
    await page.getByText("best format, subtitles").waitFor();
    const [task] = (await app.store.list({ limit: 1 })).tasks;
    expect(task?.options).toEqual({ subtitles: { languages: ["en"], automatic: true } });
  });

  it("shows when a video and the entries of a list were published", async () => {
    const app = await openApp();
    app.pages.set(address, filmPage(address, { uploaded_at: "2026-03-02" }));
    const feed = "https://video.example.com/feed";
    const list = playlistPage(feed, 1);
    app.pages.set(feed, {
      ...list,
      entries: (list.entries ?? []).map((each) => ({ ...each, uploaded_at: "2026-03-02" })),
    });
    const tab = await openTab(app.url);
    for (const url of [address, feed]) {
      await tab.paste(url);
      await tab.page
        .getByRole("dialog")
        .getByText(/Mar 2, 2026/)
        .waitFor();
      await tab.page.getByRole("button", { name: "Close" }).click();
    }
  });

  it.each([
    ["the service itself", { resolver: "page" }],
    ["yt-dlp (Film site)", { resolver: "yt-dlp", extractor: "Film site" }],
  ])("says that %s has read the page", async (reader, fields) => {
    const app = await openApp();
    app.pages.set(address, filmPage(address, fields));
    const { page } = await openTab(app.url, { path: `?url=${encodeURIComponent(address)}` });
    await page.getByText("How do we know?").click();
    await page.getByText(`Read by ${reader}, `).waitFor();
  });

  it("says what subtitles are for, if several are in one language", async () => {
    const app = await openApp();
    const file = { url: "https://media.example.com/en.vtt", ext: "vtt", name: null };
    const roles = ["subtitles", "captions", "forced"] as const;
    const en = roles.map((role) => ({ ...file, url: `${file.url}?${role}`, role }));
    app.pages.set(address, filmPage(address, { subtitles: { en } }));
    const { page } = await openTab(app.url, { path: `?url=${encodeURIComponent(address)}` });
    await page.getByText("Subtitles (3)").click();
    const links = page.getByRole("dialog").getByRole("link", { name: /^English/ });
    await links.first().waitFor();
    expect(await links.allTextContents()).toEqual([
      "English (vtt)",
      "English, captions (vtt)",
      "English, forced (vtt)",
    ]);
  });

  it("names subtitles that come in segments without a link to their playlist", async () => {
    const app = await openApp();
    const file = { url: "https://media.example.com/en.vtt", ext: "vtt", name: null };
    const list = { url: "https://media.example.com/de.m3u8", ext: "m3u8", name: null };
    app.pages.set(address, filmPage(address, { subtitles: { en: [file], de: [list] } }));
    const { page } = await openTab(app.url, { path: `?url=${encodeURIComponent(address)}` });
    await page.getByText("Subtitles (2)").click();
    const items = page
      .getByRole("dialog")
      .getByRole("listitem")
      .filter({ hasText: /^(English|German)/ });
    await items.first().waitFor();
    expect(await items.allTextContents()).toEqual(["English (vtt)", "German"]);
    expect(await items.getByRole("link").count()).toBe(1);
  });

  it("downloads only the parts that are typed, and says what is wrong with them", async () => {
    const app = await openApp();
    app.pages.set(address, filmPage(address));
    const { page } = await openTab(app.url, { path: `?url=${encodeURIComponent(address)}` });
    const dialog = page.getByRole("dialog", { name: "An evening walk by the sea" });
    await dialog.getByText("Only parts of it").click();
    const field = dialog.getByRole("textbox", { name: "Parts" });
    await field.fill("1:20-1:10");
    await dialog.locator("p.failure", { hasText: "Write each part as 1:20-2:45" }).waitFor();
    await field.fill("1:20-2:45, 10:00-");
    await dialog.getByText("Without an end").waitFor();
    await dialog.getByRole("button", { name: "Download the best" }).click();
    await page.getByText("best format, 1:20–2:45, 10:00–").waitFor();
    const [task] = (await app.store.list({ limit: 1 })).tasks;
    expect(task?.options).toEqual({
      ranges: [
        { start: 80, end: 165 },
        { start: 600, end: null },
      ],
    });
  });

  it("offers no subtitles and languages where there are none", async () => {
    const app = await openApp();
    app.pages.set(address, filmPage(address));
    const { page } = await openTab(app.url, { path: `?url=${encodeURIComponent(address)}` });
    const dialog = page.getByRole("dialog", { name: "An evening walk by the sea" });
    await dialog.getByRole("button", { name: "Download 360p, 5.1 MB" }).waitFor();
    expect(await dialog.getByRole("checkbox").count()).toBe(0);
  });

  it("shows what is asked for in the moment in which the last dialog is closed, until Escape closes it", async () => {
    const app = await openApp();
    const next = `${address}/next`;
    app.pages.set(address, filmPage(address));
    app.pages.set(next, filmPage(next, { title: "A morning walk" }));
    const tab = await openTab(app.url);
    await tab.paste(address);
    const { page } = tab;
    await page.getByRole("dialog", { name: "An evening walk by the sea" }).waitFor();
    await page.evaluate(`{
      const field = document.querySelector("#address");
      const dialog = document.querySelector("dialog.finding");
      new MutationObserver((_, observer) => {
        observer.disconnect();
        field.value = ${JSON.stringify(next)};
        field.dispatchEvent(new Event("input"));
        field.form.requestSubmit();
      }).observe(dialog, { attributeFilter: ["open"] });
      dialog.querySelector("button").click();
    }`);
    await page.getByRole("dialog", { name: "A morning walk" }).waitFor();
    // The event of the closed dialog comes with a frame.
    await page.evaluate("new Promise((shown) => requestAnimationFrame(() => setTimeout(shown)))");
    await page.getByRole("dialog", { name: "A morning walk" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog[open]").waitFor({ state: "detached" });
    expect(new URL(page.url()).search).toBe("");
  });

  it("tells formats apart that would read the same: by the container, the bit rate or the id, and says nothing more of others", async () => {
    const app = await openApp();
    const low = { width: 640, height: 360 };
    const hls = { ...low, protocol: "m3u8" } as const;
    const formats = [
      format("alone", { width: 1280, height: 720 }),
      format("hls", { ...hls, tbr: 660 }),
      format("file", { ...low, filesize: 5_100_000 }),
      format("fast", { ...hls, height: 240, tbr: 400 }),
      format("slow", { ...hls, height: 240, tbr: 399 }),
      format("one", { ...hls, height: 144, tbr: 200 }),
      format("other", { ...hls, height: 144, tbr: 200 }),
    ];
    app.pages.set(address, filmPage(address, { formats }));
    const tab = await openTab(app.url);
    await tab.paste(address);
    const names = tab.page.getByRole("rowheader");
    await expect
      .poll(() => names.allTextContents())
      .toEqual(["720p", "360p HLS", "360p MP4", "240p 400 kbit/s", "240p 399 kbit/s", "144p one", "144p other"]);
    await tab.page.getByRole("button", { name: "Download 720p, size unknown" }).waitFor();
    await tab.page.getByRole("button", { name: "Download 360p, MP4, 5.1 MB" }).click();
    await tab.page.getByRole("article").waitFor();
    const { tasks } = await app.store.list({ limit: 2 });
    expect(tasks.map(({ options }) => options)).toEqual([{ format_id: "file" }]);
  });

  it("asks before it downloads several pasted addresses, and leaves out those that are not chosen", async () => {
    const app = await openApp();
    const tab = await openTab(app.url);
    const addresses = [1, 2, 3].map((n) => `https://video.example.com/watch/part-${n}`);
    await tab.paste(addresses.join(" "));
    const dialog = tab.page.getByRole("dialog", { name: "3 pages" });
    await dialog.getByRole("checkbox", { name: "https://video.example.com/watch/part-2" }).uncheck();
    expect(await storedUrls(app)).toEqual([]);
    await dialog.getByRole("combobox", { name: "Quality" }).selectOption("At most 720p");
    await dialog.getByRole("button", { name: "Download 2" }).click();
    await dialog.waitFor({ state: "detached" });
    await tab.page.getByText("Added: 2 of 2 pages").waitFor();
    expect(await storedUrls(app)).toEqual([addresses[0], addresses[2]]);
    const { tasks } = await app.store.list({ limit: 200 });
    expect(tasks.map(({ options }) => options)).toEqual([{ max_height: 720 }, { max_height: 720 }]);
    await expect.poll(() => tab.page.getByRole("article").count()).toBe(2);
  });

  it("says how many of several pages were not added, and why at each of them", async () => {
    const app = await openApp({ store: createMemoryStore({ maxQueued: 1 }) });
    const tab = await openTab(app.url);
    tab.expectShifts("<li");
    await tab.paste("https://video.example.com/watch/one https://video.example.com/watch/two");
    const dialog = tab.page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Download 2" }).click();
    await dialog.getByRole("alert").getByText("Not added: 1 of 2 pages.").waitFor();
    const left = dialog.getByRole("listitem");
    expect(await left.count()).toBe(1);
    expect(await left.textContent()).toContain("The service is not available at the moment.");
    await dialog.getByRole("button", { name: "Download 1" }).waitFor();
  });

  it("keeps what was added of over 500 pages if a later request for them fails", async () => {
    const app = await openApp();
    const tab = await openTab(app.url);
    tab.expectFailures(/tasks\/batch/);
    tab.expectShifts("<li");
    let requests = 0;
    await tab.page.route("**/tasks/batch", (route) => (++requests === 2 ? route.abort() : route.continue()));
    await tab.paste(Array.from({ length: 501 }, (_, n) => `https://video.example.com/${n}`).join(" "));
    const dialog = tab.page.getByRole("dialog", { name: "501 pages" });
    await dialog.getByRole("button", { name: "Download 501" }).click();
    await dialog.getByRole("alert").getByText("Not added: 1 of 501 pages.").waitFor();
    await dialog.getByRole("button", { name: "Download 1", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    const { tasks } = await app.store.list({ limit: 1_000 });
    expect(new Set(tasks.map(({ url }) => url)).size).toBe(501);
    expect(tasks).toHaveLength(501);
  });

  it("keeps a dialog that is opened while others are added", async () => {
    const store = createMemoryStore({ events: createTaskEvents() });
    const gate = Promise.withResolvers<void>();
    const create: typeof store.create = async (...given) => {
      await gate.promise;
      return store.create(...given);
    };
    const app = await openApp({ store: { ...store, create } });
    app.pages.set(address, filmPage(address));
    const { page, paste } = await openTab(app.url);
    await paste([1, 2].map((n) => `https://video.example.com/watch/part-${n}`).join(" "));
    const dialog = page.getByRole("dialog", { name: "2 pages" });
    await dialog.getByRole("button", { name: "Download 2" }).click();
    await dialog.getByRole("button", { name: "Close" }).click();
    await dialog.waitFor({ state: "detached" });
    await paste(address);
    const best = page.getByRole("button", { name: "Download the best" });
    const row = page.getByRole("button", { name: "Download 360p, 5.1 MB" });
    for (const button of [best, row]) expect(await button.isDisabled()).toBe(true);
    gate.resolve();
    await page.getByText("Added: 2 of 2 pages").waitFor();
    await best.click();
    await expect.poll(async () => (await storedUrls(app)).length).toBe(3);
  });

  it("shows whole lines of a long title, and a long list only above the button that downloads it", async () => {
    const app = await openApp();
    const title = "A title that goes on and on ".repeat(20);
    app.pages.set(address, { ...playlistPage(address, 60), title });
    const { page } = await openTab(app.url, { path: `?url=${encodeURIComponent(address)}` });
    await page.setViewportSize({ width: 390, height: 844 });
    const dialog = page.getByRole("dialog");
    await dialog.getByText("part 60").waitFor({ state: "attached" });
    const [lines, belowPx] = (await page.evaluate(`(() => {
      const dialog = document.querySelector("dialog.finding");
      const heading = dialog.querySelector("h2");
      const style = getComputedStyle(heading);
      const footer = dialog.querySelector(".choices ~ .row:last-child").getBoundingClientRect();
      const lineHeight = heading.getBoundingClientRect().height / Number.parseFloat(style.lineHeight);
      return [lineHeight, dialog.getBoundingClientRect().bottom - footer.bottom];
    })()`)) as [number, number];
    expect(Math.abs(lines - Math.round(lines))).toBeLessThan(0.05);
    expect(Math.abs(belowPx)).toBeLessThanOrEqual(1);
  });

  it("lets somebody choose from a playlist, and look at one of its videos first", async () => {
    const app = await openApp();
    app.pages.set(address, playlistPage(address, 3));
    const part = "https://video.example.com/watch/part-2";
    app.pages.set(part, filmPage(part, { title: "The second part" }));
    const tab = await openTab(app.url);
    await tab.paste(address);
    const list = tab.page.getByRole("dialog", { name: "The last train" });
    expect(await list.getByRole("button", { name: "Download", exact: true }).isDisabled()).toBe(true);
    await list.getByRole("button", { name: "Formats of The last train, part 2" }).click();
    await tab.page.getByRole("dialog", { name: "The second part" }).waitFor();
    await tab.page.getByRole("button", { name: "Close" }).click();
    await tab.paste(address);
    await list.getByRole("checkbox", { name: "All" }).check();
    await list.getByRole("button", { name: "Download 3" }).click();
    await expect.poll(() => storedUrls(app)).toEqual([address]);
    expect((await app.store.list({ limit: 1 })).tasks[0]?.options).toEqual({ entries: "all" });
  });

  it("stops looking when asked, and the service stops reading", async () => {
    const app = await openApp();
    const begun = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<void>();
    app.pages.set(address, ({ signal }) => {
      begun.resolve();
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => {
        stopped.resolve();
        reject(signal.reason);
      });
      return promise;
    });
    const tab = await openTab(app.url);
    await tab.paste(address);
    await begun.promise;
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
    await tab.page.getByText("Canceled.", { exact: true }).waitFor();
  });
}
