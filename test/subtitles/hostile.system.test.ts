import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import packageJson from "../../package.json" with { type: "json" };
import { afterAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "unreel-subtitles-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Those of a download's process. */
const flags = packageJson.config.flags.split(" ");
const child = new URL("hostile-child.ts", import.meta.url).pathname;
const tt = (body: string) => `<tt xmlns="http://www.w3.org/ns/ttml"><body>${body}</body></tt>`;
const MiB = 1 << 20;

describe("a process that reads hostile subtitles needs less than 256 MiB:", () => {
  it.each([
    ["a million cues of WebVTT", "upstream_invalid", `WEBVTT\n\n${"00:01.000 --> 00:02.000\nx\n\n".repeat(1_000_000)}`],
    ["a million paragraphs", "upstream_invalid", tt('<p begin="1s" end="2s">x</p>'.repeat(1_000_000))],
    ["elements that do not end", "upstream_invalid", tt("<div>".repeat(5_000_000))],
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
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, child, path]);
    const { read, peakMiB } = JSON.parse(stdout) as { read: string; peakMiB: number };
    expect(read).toContain(expected);
    expect(peakMiB).toBeLessThan(256);
  });
});
