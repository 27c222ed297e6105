import { ascii, box, fullBox, u16, u32, u32Table, u64 } from "../boxes.ts";
import { bcp47ToMp4 } from "../language.ts";
import type { TrackIndex } from "./track.ts";

/** Where the media data are in the file, bytes. */
export interface MediaDataRange {
  start: number;
  size: number;
}

/** Returns a `mdia` box: the track's format and its sample tables (ISO/IEC 14496-12 §8.4 to §8.7). */
export function mediaBox(track: TrackIndex, data: MediaDataRange): Uint8Array {
  const { kind, timescale, language } = track.format;
  const isVideo = kind === "video";
  const wide = track.mediaTicks > 0xffffffff;
  return box(
    "mdia",
    fullBox(
      "mdhd",
      wide ? 1 : 0,
      0,
      wide ? u64(0, 0) : u32(0, 0),
      u32(timescale),
      wide ? u64(track.mediaTicks) : u32(track.mediaTicks),
      u16(bcp47ToMp4(language), 0),
    ),
    fullBox("hdlr", 0, 0, u32(0), ascii(isVideo ? "vide" : "soun"), u32(0, 0, 0), ascii("\0")),
    box(
      "minf",
      isVideo ? fullBox("vmhd", 0, 1, u32(0, 0)) : fullBox("smhd", 0, 0, u32(0)),
      box("dinf", fullBox("dref", 0, 0, u32(1), fullBox("url ", 0, 1))),
      sampleTable(track, data),
    ),
  );
}

function sampleTable(track: TrackIndex, data: MediaDataRange): Uint8Array {
  const { sampleEntries, sizes, syncs, compositions, durations, chunkRuns } = track;
  const parts = [
    fullBox("stsd", 0, 0, u32(sampleEntries.length), ...sampleEntries),
    table("stts", durations, 2),
  ];
  if (compositions.some((value, i) => i % 2 === 1 && value !== 0)) {
    parts.push(table("ctts", compositions, 2));
  }
  if (syncs.length < sizes.length) parts.push(table("stss", syncs, 1));
  parts.push(
    table("stsc", chunkRuns, 3),
    fullBox("stsz", 0, 0, u32(0, sizes.length), u32Table(sizes)),
    chunkOffsets(track.chunks, data),
  );
  return box("stbl", ...parts);
}

function table(type: string, values: Uint32Array, columns: number): Uint8Array {
  return fullBox(type, 0, 0, u32(values.length / columns), u32Table(values));
}

function chunkOffsets(chunks: readonly number[], { start, size }: MediaDataRange): Uint8Array {
  const wide = start + size > 0xffffffff;
  const offsets = new Uint32Array(wide ? chunks.length * 2 : chunks.length);
  for (const [i, chunk] of chunks.entries()) {
    const offset = start + chunk;
    if (wide) offsets.set([Math.floor(offset / 2 ** 32), offset % 2 ** 32], i * 2);
    else offsets[i] = offset;
  }
  return fullBox(wide ? "co64" : "stco", 0, 0, u32(chunks.length), u32Table(offsets));
}
