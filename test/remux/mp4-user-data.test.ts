import { describe, expect, it } from "vitest";
import { readSampleLists } from "../../src/remux/mp4/read/sample-list.ts";
import { ascii, box, fullBox } from "../../src/remux/mp4/boxes.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { openFile } from "../../src/remux/open-file.ts";
import { cut } from "./mp4-cuts.ts";
import { openFolder } from "./mp4-media.ts";
import { audioFormat, fillPattern, videoFormat } from "./mp4-samples.ts";

const folder = openFolder();
const source = folder.path("source.mp4");
const target = folder.path("target.mp4");

const role = (value: string) => fullBox("kind", 0, 0, ascii(`urn:mpeg:dash:role:2011\0${value}\0`));
const commentary = box("udta", role("commentary"), box("name", ascii("Director")));

/** Writes 4 s of video, and of audio tracks that say this of themselves. */
function write(...userData: readonly (Uint8Array | null)[]) {
  const writer = new Mp4Writer({ path: source, expectedS: 4 });
  const formats = [videoFormat, ...userData.map((own) => ({ ...audioFormat, ...(own !== null && { userData: own }) }))];
  for (const format of formats) {
    const track = writer.setFormat(format);
    const duration = format.timescale / 25;
    for (let i = 0; i < 100; i++) {
      const at = i * duration;
      writer.write(track, { data: fillPattern(20, i), dts: at, pts: at, duration, isSync: true });
    }
  }
  writer.finish();
}

/** Returns what the tracks of a file say of themselves, as text. */
function userDataIn(path: string) {
  using file = openFile(path);
  return readSampleLists(file).map(({ track }) => {
    const { userData } = track.formats[0]!;
    return userData === undefined ? null : Buffer.from(userData).toString("latin1");
  });
}

describe("what the tracks of an MP4 say of themselves", () => {
  const text = Buffer.from(commentary).toString("latin1");

  it("is there after a cut: roles, names, and nothing for those that say nothing", async () => {
    write(null, commentary);
    await cut(source, target, [{ startS: 1, endS: 2 }]);
    expect(userDataIn(target)).toEqual([null, null, text]);
  });

  it("is left out if it is longer than 16 KiB", async () => {
    write(commentary, box("udta", role("x".repeat(16 << 10))));
    await cut(source, target, [{ startS: 1, endS: 2 }]);
    expect(userDataIn(target)).toEqual([null, text, null]);
  });
});
