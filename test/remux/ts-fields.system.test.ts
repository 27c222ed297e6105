import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { eightFields, transport } from "./field-stream.ts";
import { createMediaFolder, hasFfmpeg, probePackets } from "./ts-media.ts";
import { start } from "./ts-recorder.ts";
import { decodedMd5 } from "../media/read-media.ts";

describe.skipIf(!hasFfmpeg)("an MP4 of field-coded H.264", () => {
  const media = createMediaFolder();

  for (const second of ["intra", "skipped"] as const) {
    it(`decodes to the same frames as its source, one packet for each: ${second} second fields`, () => {
      const pictures = eightFields.map((picture, i) => (i % 2 === 1 ? { ...picture, kind: second } : picture));
      const source = transport(pictures);
      writeFileSync(media.path("source.ts"), source);
      const sink = new Mp4Writer({ path: media.path("result.mp4"), expectedS: null });
      const demuxer = createMpegTsDemuxer({ sink, timelines: new Timelines(), kinds: ["video"] });
      demuxer.read(source, start);
      demuxer.flush();
      sink.finish();
      expect(probePackets(media.path("result.mp4")).video).toHaveLength(4);
      expect(decodedMd5(media.path("result.mp4"), "video")).toBe(decodedMd5(media.path("source.ts"), "video"));
    });
  }
});
