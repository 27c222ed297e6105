import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import packageJson from "../../package.json" with { type: "json" };
import { describe, expect, it, onTestFinished } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge, resource } from "../media/resources.ts";
import { downloadsOf } from "../process/child-processes.ts";
import { compileCache } from "../process/keys.ts";
import { makeSharedFolder } from "../folder.ts";

const folder = makeSharedFolder();

/** Those of a download's process. */
const flags = packageJson.config.flags.split(" ");
const child = join(import.meta.dirname, "hostile-child.ts");
const tt = (body: string) => `<tt xmlns="http://www.w3.org/ns/ttml"><body>${body}</body></tt>`;
const MiB = 1 << 20;

describe("a process that reads hostile subtitles needs less than 256 MiB:", () => {
  it.each([
    ["a million cues of WebVTT", "upstream_invalid", `WEBVTT\n\n${"00:01.000 --> 00:02.000\nx\n\n".repeat(1_000_000)}`],
    ["a million paragraphs", "upstream_invalid", tt('<p begin="1s" end="2s">x</p>'.repeat(1_000_000))],
    ["elements that do not end", "upstream_invalid", tt("<div>".repeat(5_000_000))],
    [
      "a million attributes",
      "upstream_invalid",
      tt(`<p ${Array.from({ length: 1_000_000 }, (_, n) => `a${n}="1"`).join(" ")}>x</p>`),
    ],
    ["200,000 cues", "200000 cues", `WEBVTT\n\n${"00:01.000 --> 00:02.000\n<i>x</i> &amp; y\n\n".repeat(200_000)}`],
    [
      "one cue of 30 MiB",
      "upstream_invalid",
      `WEBVTT\n\n00:01.000 --> 00:02.000\n${"<b>&lt;".repeat((30 * MiB) / 7)}\n`,
    ],
    ["one cue of 2 MiB", "1 cues", `WEBVTT\n\n00:01.000 --> 00:02.000\n${"<b>&lt;".repeat((2 * MiB) / 7)}\n`],
    ["one line of 30 MiB", "upstream_invalid", "x".repeat(30 * MiB)],
  ])("%s", async (name, expected, text) => {
    const path = join(folder, name.replaceAll(/\W/g, "-"));
    writeFileSync(path, text);
    const env = { ...process.env, NODE_COMPILE_CACHE: compileCache };
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, child, path], { env });
    const { read, peakMiB } = JSON.parse(stdout) as { read: string; peakMiB: number };
    expect(read).toContain(expected);
    expect(peakMiB).toBeLessThan(256);
  });
});

describe("a download's process needs less than 256 MiB", () => {
  it("for several tasks with long subtitles, one after the other", async () => {
    const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
    const lines = (of: (i: number) => string) =>
      `WEBVTT\n\n${Array.from({ length: 40_000 }, (_, i) => `00:00:0${i % 5}.000 --> 00:00:0${(i % 5) + 1}.000\n${of(i)}\n`).join("\n")}`;
    const texts = {
      mixed: lines((i) => `${i} ${"lorem ipsum ".repeat(9)}汉`),
      styled: lines((i) => `<b>${i}</b> <i>b</i> ${"<u>c</u>".repeat(9)}`),
    };
    const stream = layFiles("ts", readRendition("high.m2t"), "ts");
    const resources = merge(
      stream.resources,
      new Map([
        ["index.m3u8", hls(mediaPlaylist(stream.lines))],
        ...Object.entries(texts).map(
          ([name, text]) => [`${name}.vtt`, resource("text/vtt", Buffer.from(text))] as const,
        ),
      ]),
    );
    await using harness = await openEntry(() => engine, resources, "index.m3u8");
    const peaksMiB: number[] = [];
    const timer = setInterval(() => peaksMiB.push(...workerPeaksMiB()), 50);
    for (const name of ["mixed", "styled", "mixed"]) {
      const listings = [{ url: harness.site.url(`${name}.vtt`), ext: "vtt", name: null }];
      const subtitles = [{ language: "en", name: "", role: "subtitles", automatic: false, listings } as const];
      const made = await harness.download({ folder: await harness.newFolder(), subtitles });
      expect(made.others).toHaveLength(2);
    }
    clearInterval(timer);
    await engine.close();
    expect(Math.max(...peaksMiB)).toBeGreaterThan(100);
    expect(Math.max(...peaksMiB)).toBeLessThan(256);
  });
});

it("a download's process needs less than 256 MiB for 199,000 cues of 28 MiB in segments of HLS", async () => {
  const vitestFlags = process.execArgv.splice(0, Infinity, ...flags);
  onTestFinished(() => void process.execArgv.splice(0, Infinity, ...vitestFlags));
  const clock = (s: number) => new Date(s * 1000).toISOString().slice(11, 23);
  const cue = (i: number) => `${clock(i * 0.036)} --> ${clock(i * 0.036 + 0.03)}\n${i} ${"lorem ipsum ".repeat(8)}\n\n`;
  const perSegment = 995;
  const names = Array.from({ length: 200 }, (_, index) => `text-${index}.vtt`);
  const segments = names.map((name, segment) => {
    const cues = Array.from({ length: perSegment }, (_, i) => cue(segment * perSegment + i));
    return [name, resource("text/vtt", Buffer.from(`WEBVTT\n\n${cues.join("")}`))] as const;
  });
  const lines = names.flatMap((name) => ["#EXTINF:35.82,", name]);
  const stream = layFiles("ts", readRendition("high.m2t"), "ts");
  const playlists = [
    ["index.m3u8", hls(mediaPlaylist(stream.lines))],
    ["text.m3u8", hls(["#EXTM3U", "#EXT-X-TARGETDURATION:36", ...lines, "#EXT-X-ENDLIST", ""].join("\n"))],
  ] as const;
  const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
  const resources = merge(stream.resources, new Map([...segments, ...playlists]));
  await using harness = await openEntry(() => engine, resources, "index.m3u8");
  const listings = [{ url: harness.site.url("text.m3u8"), ext: "m3u8", name: null }];
  const subtitles = [{ language: "en", name: "", role: "subtitles", automatic: false, listings } as const];
  const peaksMiB: number[] = [];
  const timer = setInterval(() => peaksMiB.push(...workerPeaksMiB()), 50);
  const made = await harness.download({ subtitles });
  clearInterval(timer);
  await engine.close();
  expect([made.others.length, made.warnings]).toEqual([2, []]);
  expect(Math.max(...peaksMiB)).toBeLessThan(256);
});

/** Returns the most memory that each worker process of this one has had. */
function workerPeaksMiB(): number[] {
  return downloadsOf(process.pid).flatMap((pid) => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
    } catch {
      // It has ended.
      return [];
    }
  });
}
