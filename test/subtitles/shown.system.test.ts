import { createServer } from "node:http";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cue } from "../../src/remux/additions.ts";
import { readSubtitles } from "../../src/subtitles/read.ts";
import { writeWebVtt } from "../../src/subtitles/write.ts";
import { isChromiumMissing, launchChromium } from "../web/chromium.ts";
import { listen } from "../net/listen.ts";

/** Returns the cues of a `<track>`: times, and the text that is shown. */
const readTrack = `async (url) => {
  const video = document.createElement("video");
  const track = document.createElement("track");
  track.src = url;
  video.append(track);
  document.body.append(video);
  track.track.mode = "hidden";
  await new Promise((resolve, reject) => ((track.onload = resolve), (track.onerror = reject)));
  return [...track.track.cues].map((cue) => [cue.startTime, cue.endTime, cue.getCueAsHTML().textContent]);
}`;

const times = Array.from({ length: 400 }, (_, i) => ({ startS: i * 11.037, endS: i * 11.037 + 3.5 + (i % 7) }));
const texts = ["one", "two\nlines", "<i>slanted</i> & more", "a --> b", "שלום", "終わり 🎬", "1 < 2 > 0"];
const escaped = (text: string) =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll(/<(?!\/?i>)/g, "&lt;")
    .replaceAll(/(?<!i)>/g, "&gt;");
const plain = (text: string) => text.replaceAll(/<\/?i>/g, "");
const clock = (seconds: number, point: string) => {
  const ms = Math.round(seconds * 1000);
  const parts = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60];
  return `${parts.map((part) => String(part).padStart(2, "0")).join(":")}${point}${String(ms % 1000).padStart(3, "0")}`;
};
const textAt = (i: number) => texts[i % texts.length]!;
const each = (write: (cue: Pick<Cue, "startS" | "endS">, text: string) => string) =>
  times.map((cue, i) => write(cue, textAt(i))).join("");

const webVtt = `WEBVTT\n\n${each(({ startS, endS }, text) => `${clock(startS, ".")} --> ${clock(endS, ".")} align:start\n${escaped(text)}\n\n`)}`;
const kinds: Record<string, Buffer> = {
  WebVTT: Buffer.from(webVtt),
  "WebVTT in UTF-16 with CRLF": Buffer.from(`\uFEFF${webVtt.replaceAll("\n", "\r\n")}`, "utf16le"),
  SubRip: Buffer.from(
    each(({ startS, endS }, text) => `1\n${clock(startS, ",")} --> ${clock(endS, ",")}\n${text}\n\n`),
  ),
  TTML: Buffer.from(
    `<tt xmlns="http://www.w3.org/ns/ttml"><body><div>${each(
      ({ startS, endS }, text) =>
        `<p begin="${startS.toFixed(3)}s" end="${endS.toFixed(3)}s">${escaped(plain(text)).replaceAll("\n", "<br/>")}</p>`,
    )}</div></body></tt>`,
  ),
};

describe.skipIf(isChromiumMissing)("Chromium shows every cue of a file that is written, at its time:", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser?.close());

  it.each(Object.entries(kinds))("%s", async (_, bytes) => {
    const written = [...writeWebVtt(readSubtitles(bytes).cues)].join("");
    const server = createServer(({ url }, response) => {
      const isTrack = url === "/subtitles.vtt";
      response.writeHead(200, { "content-type": isTrack ? "text/vtt" : "text/html" });
      response.end(isTrack ? written : "<!DOCTYPE html><body></body>");
    });
    const port = await listen(server);
    const origin = `http://127.0.0.1:${port}`;
    const page = await browser.newPage();
    try {
      await page.goto(origin);
      const call = `(${readTrack})(${JSON.stringify(`${origin}/subtitles.vtt`)})`;
      const shown = (await page.evaluate(call)) as [number, number, string][];
      expect(shown.map(([, , text]) => text)).toEqual(times.map((__, i) => plain(textAt(i))));
      const offS = shown.flatMap(([startS, endS], i) => [startS - times[i]!.startS, endS - times[i]!.endS]);
      expect(Math.max(...offS.map(Math.abs))).toBeLessThan(0.01);
    } finally {
      await page.close();
      server.closeAllConnections();
      server.close();
    }
  });
});
