import { createReadStream, statSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser } from "playwright-core";
import type { MediaRange } from "../../src/remux/samples.ts";
import { cut } from "./mp4-cuts.ts";
import { isChromiumMissing, launchChromium } from "../web/chromium.ts";
import { ffmpeg, missing, openFolder } from "./mp4-media.ts";

const folder = openFolder();

const fps = 25;
/** The brightness of frame n is 20 + 2 n. */
const video = `-f lavfi -i color=black:size=160x90:rate=${fps}:duration=4,geq=lum=20+2*N:cb=128:cr=128`;
const single = [{ startS: 0.52, endS: 3.24 }];
const late = [{ startS: 1.68, endS: 2.6 }];
const joined = [
  { startS: 0.52, endS: 1.2 },
  { startS: 1.68, endS: 2.04 },
  { startS: 3, endS: 3.6 },
];
const h264 = ["libx264", "-c:v libx264 -preset veryfast -bf 3 -g 50 -crf 10"] as const;
const openGroups = ["libx264", "-c:v libx264 -preset veryfast -bf 3 -g 20 -x264-params open-gop=1 -crf 10"] as const;
const short = ["libx264", "-c:v libx264 -preset veryfast -bf 3 -g 20 -crf 10"] as const;
const vp9 = ["libvpx-vp9", "-c:v libvpx-vp9 -cpu-used 8 -deadline realtime -g 50 -b:v 1M"] as const;

/** Opens a video, and a canvas to look at it. */
const openVideo = `const video = document.createElement("video");
  video.muted = true;
  video.src = url;
  await new Promise((resolve) => (video.onloadeddata = resolve));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [16, 16];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const shown = [];`;

/** Seeks to the middle of each frame of a video; returns the frames that are shown, by their brightness, and their times. */
const seek = `async (url, count) => {
  ${openVideo}
  for (let n = 0; n < count; n++) {
    const frame = new Promise((resolve) => video.requestVideoFrameCallback((_, { mediaTime }) => resolve(mediaTime)));
    video.currentTime = (n + 0.5) / ${fps};
    const mediaTime = await frame;
    context.drawImage(video, 0, 0, 16, 16);
    shown.push([context.getImageData(8, 8, 1, 1).data[0], mediaTime]);
  }
  return { shown, duration: video.duration };
}`;

/**
 * Plays a video; returns the frames that are shown, by their brightness, and their times. The time is read from the
 * frame: while the page is busy, the video may already show the frame after the one that a callback is told of.
 */
const play = `async (url) => {
  ${openVideo}
  const note = () => {
    const frame = new VideoFrame(video);
    context.drawImage(frame, 0, 0, 16, 16);
    shown.push([context.getImageData(8, 8, 1, 1).data[0], frame.timestamp / 1e6]);
    frame.close();
    video.requestVideoFrameCallback(note);
  };
  video.requestVideoFrameCallback(note);
  const ended = new Promise((resolve) => (video.onended = resolve));
  await video.play();
  await ended;
  return { shown, duration: video.duration };
}`;

describe.skipIf(isChromiumMissing).concurrent("Chromium shows exactly the ranges of a cut:", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser?.close());

  it.for([
    ["H.264 with B-frames, wherever one seeks to", h264, single, seek],
    ["VP9, wherever one seeks to", vp9, single, seek],
    ["H.264 with B-frames, several that are played", h264, joined, play],
    ["H.264 with B-frames and short GOPs, several that are played", short, joined, play],
    ["VP9, several that are played", vp9, joined, play],
    ["H.264 with B-frames, several, wherever one seeks to", h264, joined, seek],
    ["VP9, several, wherever one seeks to", vp9, joined, seek],
    ["H.264 with B-frames and short GOPs, several, wherever one seeks to", short, joined, seek],
    ["H.264 with open GOPs, several that are played", openGroups, joined, play],
    ["H.264 with open GOPs, a late one that is played", openGroups, late, play],
  ] as const)("%s", async ([name, [encoder, codec], ranges, look], { skip }) => {
    skip(missing(encoder) !== false);
    const [source, target] = ["", "-cut"].map((part) => folder.path(`${name.replaceAll(/\W/g, "-")}${part}.mp4`));
    ffmpeg(`${video} ${codec} -pix_fmt yuv420p -color_range tv ${source}`);
    const made = await cut(source!, target!, ranges);
    const frames = framesIn(ranges);
    expect(made?.durationS).toBeCloseTo(frames.length / fps, 6);
    const server = createServer(({ headers }, response) => serve(target!, headers.range, response));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const page = await browser.newPage();
    try {
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      await page.goto(`${origin}/`);
      const call = `(${look})(${JSON.stringify(`${origin}/video`)}, ${frames.length})`;
      const group = Number(/-g (\d+)/.exec(codec)?.[1]);
      const seen = new Set<number>();
      const firsts = new Set(ranges.map(({ startS }) => Math.round(startS * fps)));
      const hasSeen = ({ startS, endS }: MediaRange) =>
        [...seen].filter((n) => n >= startS * fps && n < endS * fps).length > 4;
      // A frame that is played may be missed while the page is busy, so it is played again.
      while (!ranges.every(hasSeen)) {
        const { shown, duration } = (await page.evaluate(call)) as { shown: [number, number][]; duration: number };
        // Chromium adds what is decoded, but not shown, after the end.
        expect(Math.abs(duration - frames.length / fps)).toBeLessThan(2.5 / fps);
        const numbers = shown.map(([brightness]) => nearestFrame(brightness));
        if (look === seek) expect(numbers).toEqual(frames);
        for (const [index, [, timeS]] of shown.entries()) {
          const number = numbers[index]!;
          const expected = frames[Math.round(timeS * fps)]!;
          // A page that plays the video rarely gets the key frame that is decoded for a range, at the time of the range's first frame.
          if (look === play && firsts.has(expected) && number === expected - (expected % group)) continue;
          expect(number).toBe(expected);
          seen.add(number);
        }
      }
    } finally {
      await page.close();
      server.closeAllConnections();
      server.close();
    }
  });
});

function framesIn(ranges: readonly MediaRange[]): number[] {
  return ranges.flatMap(({ startS, endS }) => {
    const first = Math.round(startS * fps);
    return Array.from({ length: Math.round(endS * fps) - first }, (_, n) => first + n);
  });
}

/** Video range 16 to 235 is shown as 0 to 255. */
function nearestFrame(brightness: number): number {
  return Math.round((16 + (brightness * 219) / 255 - 20) / 2);
}

function serve(path: string, range: string | undefined, response: ServerResponse): void {
  const { size } = statSync(path);
  const [, from = "0", to = ""] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
  const end = to === "" ? size - 1 : Number(to);
  const headers = { "content-type": "video/mp4", "accept-ranges": "bytes", "content-length": end - Number(from) + 1 };
  if (range === undefined) response.writeHead(200, headers);
  else response.writeHead(206, { ...headers, "content-range": `bytes ${from}-${end}/${size}` });
  createReadStream(path, { start: Number(from), end }).pipe(response);
}
