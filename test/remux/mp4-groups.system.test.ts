import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { assignedGroups, describedGroups, groupsOf, withBoxes } from "./group-maker.ts";
import { audioInput, ffmpeg, missing, openFolder, videoInput } from "./mp4-media.ts";
import { readMediaSync } from "../media/read-media.ts";

const folder = openFolder();

const fragments = "-movflags +frag_keyframe+empty_moov+default_base_moof";

function remux(source: Buffer, path: string): void {
  writeFileSync(`${path}.source`, source);
  const sink = new Mp4Writer({ path, expectedS: null });
  const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds: ["video", "audio"] });
  Array.from(demuxer.readFile({ path: `${path}.source` }, { timeline: 0, offsetS: null }));
  sink.finish();
}

/** Says of the first picture of each fragment but the first one that it is no sync sample. */
function withoutSyncs(file: Buffer): Buffer {
  const changed = Buffer.from(file);
  const [firstFlags, sync, dependsOnNone] = [0x4, 0x2000000, 0x2010000];
  let count = 0;
  for (let at = changed.indexOf("trun"); at >= 0; at = changed.indexOf("trun", at + 4)) {
    const flags = changed.readUInt32BE(at + 4) & 0xffffff;
    expect(flags & firstFlags).toBe(firstFlags);
    expect(changed.readUInt32BE(at + 16)).toBe(sync);
    if (count > 0) changed.writeUInt32BE(dependsOnNone, at + 16);
    count += 1;
  }
  return changed;
}

describe.skipIf(missing("libx264"))("pictures at which decoding may start, though they are no sync samples,", () => {
  const path = folder.path("video.mp4");
  /** The time of the packet at which a player begins to decode that has gone to `atS`. */
  const landing = (file: string, atS: number) =>
    Number(
      readMediaSync(
        "ffprobe",
        ..."-v error -show_entries packet=pts_time -of csv=p=0 -read_intervals".split(" "),
        `${atS}%+#1`,
        file,
      ).split(/[,\s]/, 1)[0],
    );
  /** The picture that a player shows after it has gone to `atS`. */
  const shown = (file: string, atS: number) =>
    readMediaSync(
      "ffmpeg",
      ..."-v error -ss".split(" "),
      `${atS}`,
      "-i",
      file,
      ..."-frames:v 1 -f framemd5 -".split(" "),
    )
      .split(",")
      .at(-1);

  it("are where a player goes to in the file that is made of fragments", () => {
    ffmpeg(`${videoInput(4)} -c:v libx264 -preset ultrafast -g 20 -sc_threshold 0 ${fragments} ${path}`);
    const source = withoutSyncs(readFileSync(path));
    remux(source, folder.path("plain.mp4"));
    expect(landing(folder.path("plain.mp4"), 2.5)).toBe(0);
    const rap = { type: "rap ", descriptions: [[0x80]], runs: [1, 0x10001] };
    const grouped = withBoxes(source, ["moof", "traf"], (fragment) =>
      fragment === 0 ? [] : [describedGroups(rap), assignedGroups(rap)],
    );
    const result = folder.path("grouped.mp4");
    remux(grouped, result);
    expect([0.9, 2.5, 3.9].map((atS) => landing(result, atS))).toEqual([0.8, 2.4, 3.2]);
    expect(shown(result, 2.52)).toBe(shown(path, 2.52));
    expect(readMediaSync("ffmpeg", ..."-v warning -i".split(" "), result, ..."-f md5 -".split(" "))).toBe(
      readMediaSync("ffmpeg", ..."-v warning -i".split(" "), path, ..."-f md5 -".split(" ")),
    );
  });
});

describe.skipIf(missing("aac", "libopus"))("groups of audio", () => {
  it.each([
    ["aac", "ffff"],
    ["libopus", "fffc"],
  ])("are those of the source: %s", (codec, entry) => {
    const source = folder.path(`${codec}.mp4`);
    ffmpeg(`${audioInput(2)} -c:a ${codec} ${source}`);
    const groups = groupsOf(readFileSync(source));
    expect(groups["roll"]?.entries).toEqual([entry]);
    remux(readFileSync(source), folder.path(`${codec}-made.mp4`));
    expect(groupsOf(readFileSync(folder.path(`${codec}-made.mp4`)))).toEqual(groups);
  });
});
