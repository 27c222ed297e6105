import { expect, it } from "vitest";
import type { OpenTab } from "../browser.ts";
import { filmTitle, openFilmSite } from "./film-page.ts";
import { openApp } from "./open-app.ts";
import { openService } from "./restartable.ts";
import { addDone } from "./stored-tasks.ts";

export function playing(openTab: OpenTab): void {
  it.each([
    ["at once for those who want little motion", "reduce", "instant"],
    ["gradually for others", "no-preference", "smooth"],
  ] as const)(
    "begins to play with the click on Play, in sight: the page scrolls there %s",
    async (_, reducedMotion, behavior) => {
      const app = await openApp();
      const title = "The oldest film";
      await addDone(app, { title });
      for (const other of ["One film", "Another film", "A third film"]) {
        await addDone(app, { title: other });
      }
      const viewport = { width: 800, height: 640 };
      const { page } = await openTab(app.url, { viewport, reducedMotion });
      const play = page.getByRole("article", { name: title }).getByRole("button", { name: "Play" });
      await play.scrollIntoViewIfNeeded();
      await page.evaluate(countScrolls);
      await play.click();
      const video = page.locator("video");
      await expect
        .poll(() => video.evaluate(({ currentTime }: { currentTime: number }) => currentTime))
        .toBeGreaterThan(0);
      await expect.poll(() => video.evaluate(isInSight)).toBe(true);
      // In how many frames a busy machine shows a gradual one is not known.
      expect(await page.evaluate("asked")).toEqual([behavior]);
      const count = await page.evaluate<number>("scrolls");
      if (behavior === "instant") expect(count).toBe(1);
      else expect(count).toBeGreaterThan(0);
    },
  );

  it("offers the subtitles of a film, and shows forced ones", async () => {
    const app = await openApp();
    const title = "A film with subtitles";
    const textOf = (text: string) => `WEBVTT\n\n00:00.000 --> 00:06.000\n${text}\n`;
    await addDone(app, { title }, {}, [
      { name: `${title}.de.vtt`, content: textOf("Guten Tag") },
      { name: `${title}.de.captions.vtt`, content: textOf("[Musik]"), role: "captions" },
      { name: `${title}.de.forced.vtt`, content: textOf("Ausgang"), role: "forced" },
    ]);
    const { page, expectShifts } = await openTab(app.url);
    // The film comes half a second after the click on a busy machine.
    expectShifts("null");
    await page.getByRole("article", { name: title }).getByRole("button", { name: "Play" }).click();
    await expect
      .poll(() => page.locator("video").evaluate(tracksOf))
      .toEqual([
        ["subtitles", "de", "", "disabled", []],
        ["captions", "de", "de, captions", "disabled", []],
        ["subtitles", "de", "de, forced", "showing", ["Ausgang"]],
      ]);
  });

  it("plays what is there of a film with the click on Play now, and goes on to the file", async () => {
    const film = await openFilmSite();
    film.hold(5);
    const service = await openService();
    const tab = await openTab(service.url());
    const { page } = tab;
    tab.expectShifts();
    await tab.paste(film.url);
    await page.getByRole("button", { name: /^Download 720p/ }).click();
    const row = page.getByRole("article", { name: filmTitle });
    await row.getByRole("button", { name: "Play now" }).click();
    const video = row.locator("video");
    const time = () => video.evaluate(({ currentTime }: { currentTime: number }) => currentTime);
    await expect.poll(time).toBeGreaterThan(1);
    expect(await video.getAttribute("src")).toMatch(/\/stream$/);
    expect(await video.evaluate(({ videoHeight }: { videoHeight: number }) => videoHeight)).toBe(90);
    await row.getByRole("button", { name: "Cancel" }).waitFor();
    const shown = await time();
    film.release();
    await row.locator("video[src$='/file']").waitFor();
    await expect.poll(time).toBeGreaterThanOrEqual(shown);
    await expect.poll(() => video.evaluate(({ duration }: { duration: number }) => duration)).toBeCloseTo(6, 1);
    await row.getByRole("button", { name: "Play", exact: true }).click();
    await video.waitFor({ state: "detached" });
  });
}

/** Counts, and notes how the page asks, from the next frame on, when what has scrolled so far is told. */
const countScrolls = `new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => {
  const { scrollIntoView } = Element.prototype;
  globalThis.asked = [];
  globalThis.scrolls = 0;
  Element.prototype.scrollIntoView = function (options) {
    asked.push(options.behavior);
    return scrollIntoView.call(this, options);
  };
  addEventListener("scroll", () => scrolls++);
  resolve();
})))`;

interface Cues {
  textTracks: Iterable<{
    kind: string;
    language: string;
    label: string;
    mode: string;
    cues: Iterable<{ text: string }> | null;
  }>;
}

/** Returns what a player offers, and the texts of what it shows. */
function tracksOf({ textTracks }: Cues): unknown[] {
  return Array.from(textTracks, ({ kind, language, label, mode, cues }) => {
    return [kind, language, label, mode, Array.from(cues ?? [], ({ text }) => text)];
  });
}

interface Box {
  getBoundingClientRect(): { top: number; bottom: number };
  ownerDocument: { documentElement: { clientHeight: number } };
}

function isInSight(element: Box): boolean {
  const { top, bottom } = element.getBoundingClientRect();
  return top >= 0 && bottom <= element.ownerDocument.documentElement.clientHeight;
}
