import { ascii, box, fullBox, u16, u32, u32Table, u64 } from "../boxes.ts";
import { bcp47ToMp4 } from "../../language.ts";
import { groupBoxes } from "../sample-groups.ts";
import type { TrackIndex } from "./track.ts";

/** Where the media data are in the file, bytes. */
export interface MediaDataRange {
  start: number;
  size: number;
}

/** What a `mdia` box says. */
export interface MediaDescription {
  /** `vide`, `soun`, `sbtl`, `text`. */
  handler: string;
  timescale: number;
  /** In ticks. */
  duration: number;
  language: string | null;
  name: string;
  /** The box that only tracks of this handler have: `vmhd`, `smhd` … */
  header: Uint8Array;
  tables: SampleTables;
}

/** Contents of the sample tables, as in `TrackIndex`. */
export type SampleTables = Pick<
  TrackIndex,
  "sampleEntries" | "sizes" | "syncs" | "groups" | "compositions" | "durations" | "chunkRuns" | "chunks"
>;

/** Returns a `mdia` box: the format of a track and its sample tables (ISO/IEC 14496-12 §8.4 to §8.7). */
export function mediaBox(media: MediaDescription, data: MediaDataRange): Uint8Array {
  const { handler, timescale, duration, language, name, header, tables } = media;
  return box(
    "mdia",
    headerBox("mdhd", 0, u32(timescale), duration, u16(bcp47ToMp4(language), 0)),
    fullBox("hdlr", 0, 0, u32(0), ascii(handler), u32(0, 0, 0), utf8(name)),
    ...extendedLanguage(language),
    box(
      "minf",
      header,
      // The media data are in this file.
      box("dinf", fullBox("dref", 0, 0, u32(1), fullBox("url ", 0, 1))),
      sampleTable(tables, data),
    ),
  );
}

/** Returns the text as a file has it, ended by a zero. */
const utf8 = (text: string): Uint8Array => Buffer.from(`${text.replaceAll("\0", "")}\0`);

/** Returns an `elng` box (§8.4.6) for what three letters cannot say: a region, a script. */
function extendedLanguage(language: string | null): Uint8Array[] {
  return language?.includes("-") === true ? [fullBox("elng", 0, 0, utf8(language))] : [];
}

/**
 * Returns an `mvhd`, `tkhd` or `mdhd` (§8.2.2, §8.3.2, §8.4.2) without creation time: `fields`, the duration
 * and `rest`. Its times have 64 bits if the duration needs them.
 */
export function headerBox(
  type: string,
  flags: number,
  fields: Uint8Array,
  duration: number,
  ...rest: readonly Uint8Array[]
): Uint8Array {
  const isLong = duration > 0xffffffff;
  const times = isLong ? u64 : u32;
  return fullBox(type, isLong ? 1 : 0, flags, times(0, 0), fields, times(duration), ...rest);
}

function sampleTable(track: SampleTables, data: MediaDataRange): Uint8Array {
  const { sampleEntries, sizes, syncs, compositions, durations, chunkRuns } = track;
  const parts = [fullBox("stsd", 0, 0, u32(sampleEntries.length), ...sampleEntries), table("stts", durations, 2)];
  if (compositions.some((value, i) => i % 2 === 1 && value !== 0)) parts.push(table("ctts", compositions, 2));
  if (syncs.length < sizes.length) parts.push(table("stss", syncs, 1));
  parts.push(
    table("stsc", chunkRuns, 3),
    sampleSizes(sizes),
    chunkOffsets(track.chunks, data),
    ...groupBoxes(track.groups),
  );
  return box("stbl", ...parts);
}

/** One size stands for all samples that have it (§8.7.3), as those of PCM do. */
function sampleSizes(sizes: Uint32Array): Uint8Array {
  const [first = 0] = sizes;
  const isUniform = first > 0 && sizes.every((size) => size === first);
  const values = isUniform ? new Uint32Array() : sizes;
  return fullBox("stsz", 0, 0, u32(isUniform ? first : 0, sizes.length), u32Table(values));
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
