import { ServiceError } from "../../../model/errors.ts";
import { type BoxReader, openFullBox } from "../box-reader.ts";
import { type Box, boxesIn, childrenOf, damagedError, findChild, getChild } from "../boxes.ts";
import { mp4ToBcp47 } from "../../language.ts";
import type { Matrix } from "../matrix.ts";
import { childBoxes, type NumberSource } from "./number-source.ts";
import { isProtected } from "../sample-entry.ts";
import type { Edit, TrackKind } from "../../samples.ts";

/** Returns what a track is by its handler_type (ISO/IEC 14496-12 §8.4.3); `null`: neither audio nor video. */
export const kindByHandler = (handler: string): TrackKind | null =>
  handler === "vide" ? "video" : handler === "soun" ? "audio" : null;

/** Whether a sample entry of a track (`trak`) says that its media are encrypted. */
export function isEncrypted(bytes: Uint8Array, trak: Box): boolean {
  const entries = findChild(bytes, trak, "mdia", "minf", "stbl", "stsd");
  if (entries === undefined) return false;
  return [...boxesIn(bytes, entries.body + 8, entries.end)].some(({ type }) => isProtected(type));
}

/** Whether the tables of a track list a sample that has bytes (`stsz`, `stz2`; §8.7.3). */
export function hasSamples(bytes: Uint8Array, trak: Box): boolean {
  const tables = findChild(bytes, trak, "mdia", "minf", "stbl");
  const sizes = tables && (findChild(bytes, tables, "stsz") ?? findChild(bytes, tables, "stz2"));
  if (sizes === undefined) return false;
  const reader = openFullBox(bytes, sizes);
  const [size, count] = [reader.u32(), reader.u32()];
  const isOfOneSize = sizes.type === "stsz" && size > 0;
  return count > 0 && (isOfOneSize || bytes.subarray(sizes.body + 12, sizes.end).some((byte) => byte !== 0));
}

/** What audio has besides the programme, of the roles of DASH (ISO/IEC 23009-1 §5.8.5.5). */
const secondaryRoles: ReadonlySet<string> = new Set(["description", "commentary"]);

/** Whether a track says by its role (`kind`, ISO/IEC 14496-12 §8.10.4) that it is not the programme as such. */
function isSecondary(bytes: Uint8Array, trak: Box): boolean {
  const userData = findChild(bytes, trak, "udta");
  const kinds = userData === undefined ? [] : childrenOf(bytes, userData, "kind");
  return kinds.some(({ body, end }) => {
    const [scheme, value] = Buffer.from(bytes.subarray(body + 4, Math.min(end, body + maxTextBytes)))
      .toString()
      .split("\0");
    return scheme === "urn:mpeg:dash:role:2011" && secondaryRoles.has(value ?? "");
  });
}

/**
 * Returns when players take a track among those of its kind: 0, 1: last, as it is disabled or says that it is no programme (unless a user chooses it), 2: never, as it has no
 * samples, 3: never, as it has the chapters of another one.
 * @param chapters Of `chapterTrackIds`.
 * @param isFragmented Its samples may be in fragments.
 */
export function readRank(bytes: Uint8Array, trak: Box, chapters: ReadonlySet<number>, isFragmented: boolean): number {
  const { id, isEnabled } = readTrackHeader(bytes, getChild(bytes, trak, "tkhd"));
  if (chapters.has(id)) return 3;
  return isFragmented || hasSamples(bytes, trak) ? Number(!isEnabled || isSecondary(bytes, trak)) : 2;
}

/** Reads a `tkhd` (ISO/IEC 14496-12 §8.3.2); the size is in pixels as shown, before the matrix. */
export function readTrackHeader(bytes: Uint8Array, tkhd: Box) {
  const reader = openFullBox(bytes, tkhd);
  const { version, flags } = reader;
  reader.skip(version === 1 ? 16 : 8);
  const id = reader.u32();
  reader.skip((version === 1 ? 12 : 8) + 16);
  const matrix = readMatrix(reader);
  const [width, height] = [reader.u32() / 65536, reader.u32() / 65536];
  return { id, isEnabled: (flags & 1) !== 0, width: Math.round(width), height: Math.round(height), matrix };
}

/** Returns the ids of the tracks with chapters, as texts or pictures, of others (`chap`, QuickTime File Format). */
export function chapterTrackIds(source: NumberSource, moov: Box): Set<number> {
  const found = new Set<number>();
  for (const trak of childBoxes(source, moov, "trak")) {
    for (const references of childBoxes(source, trak, "tref")) {
      for (const { body, end } of childBoxes(source, references, "chap")) {
        for (let at = body; at + 4 <= end; at += 4) found.add(source.u32(at));
      }
    }
  }
  return found;
}

export type MovieHeader = ReturnType<typeof readMovieHeader>;

/** Reads an `mvhd` (§8.2.2); `duration` counts ticks of `timescale`, `null`: unknown. */
export function readMovieHeader(bytes: Uint8Array, mvhd: Box) {
  const { timescale } = readMediaHeader(bytes, mvhd);
  const reader = openFullBox(bytes, mvhd);
  const { version } = reader;
  reader.skip(version === 1 ? 20 : 12);
  const [high, low] = [version === 1 ? reader.u32() : 0, reader.u32()];
  const isKnown = (low !== 0 || high !== 0) && low !== 0xffffffff;
  reader.skip(16);
  return { timescale, duration: isKnown ? high * 2 ** 32 + low : null, matrix: readMatrix(reader) };
}

function readMatrix(reader: BoxReader): Matrix {
  return Array.from({ length: 9 }, () => reader.i32());
}

/** Reads the timescale of an `mvhd` or `mdhd` (§8.2.2, §8.4.2), and the language of an `mdhd`. */
export function readMediaHeader(bytes: Uint8Array, header: Box) {
  const reader = openFullBox(bytes, header);
  const { version } = reader;
  reader.skip(version === 1 ? 16 : 8);
  const timescale = reader.u32();
  if (timescale === 0) throw damagedError(`"${header.type}" has the timescale 0`);
  const durationTicks = reader.time();
  return { timescale, durationTicks, language: header.type === "mdhd" ? mp4ToBcp47(reader.u16()) : null };
}

/** Returns the language of a track, BCP 47, by its `elng` (§8.4.6), else its `mdhd`; `null`: unknown. */
export function readLanguage(bytes: Uint8Array, mdia: Box): string | null {
  const elng = findChild(bytes, mdia, "elng");
  const tag = elng && textOf(bytes.subarray(elng.body + 4, elng.end));
  if (tag !== undefined && isTag.test(tag)) return tag;
  return readMediaHeader(bytes, getChild(bytes, mdia, "mdhd")).language;
}

/** Returns the name of a track for people (§8.4.3), which QuickTime begins with its length; empty: it has none. */
export function readHandlerName(bytes: Uint8Array, mdia: Box): string {
  const hdlr = getChild(bytes, mdia, "hdlr");
  const name = bytes.subarray(hdlr.body + 24, hdlr.end);
  return textOf(name[0] === name.length - 1 ? name.subarray(1) : name);
}

const isTag = /^(?!(?:und|mis|mul|zxx)\b)[a-z]{2,8}(?:-[a-z\d]{1,8}){0,8}$/i;
const maxTextBytes = 1_000;

/** Returns text up to the first zero. */
function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, maxTextBytes)).toString().split("\0", 1)[0]!;
}

/** Beyond it a file is damaged. */
const maxEdits = 1 << 16;

/**
 * Reads the edit list of a track (§8.6.6). `shiftTicks`: how much later media times are than presentation
 * times in the first edit that is not empty, which begins at the media time `startTicks`. `edits`: all of them; `implied` if the track
 * has no such list. `rate`: as `otherRate` returns it.
 */
export function readEdits(
  bytes: Uint8Array,
  trak: Box,
  ticksPerMovieTick: number,
  implied: Edit[] = [],
): { shiftTicks: number; startTicks: number; edits: Edit[]; rate: number | null } {
  const elst = findChild(bytes, trak, "edts", "elst");
  if (elst === undefined) return shiftsOf(implied);
  const reader = openFullBox(bytes, elst);
  const toTicks = (movieTicks: number) => Math.round(movieTicks * ticksPerMovieTick);
  const edits: Edit[] = [];
  const rates: number[] = [];
  const count = reader.u32();
  if (count > maxEdits) throw damagedError(`"elst" has ${count} edits, the limit is ${maxEdits}`);
  let emptyTicks = 0;
  for (let left = count; left > 0; left--) {
    const duration = toTicks(reader.time());
    const mediaTime = reader.version === 1 ? reader.i64() : reader.i32();
    const rate = reader.i32();
    if (mediaTime < 0) {
      emptyTicks += duration;
      continue;
    }
    rates.push(rate);
    // A duration of 0 stands for "to the end".
    const durationTicks = duration === 0 && left === 1 ? Infinity : duration;
    edits.push({ mediaTicks: mediaTime, durationTicks, emptyTicks });
    emptyTicks = 0;
  }
  return { ...shiftsOf(edits), rate: otherRate(rates) };
}

function shiftsOf(edits: Edit[]) {
  const { mediaTicks: startTicks, emptyTicks: delayTicks } = edits[0] ?? { mediaTicks: 0, emptyTicks: 0 };
  return { shiftTicks: startTicks - delayTicks, startTicks, edits, rate: null };
}

const usualRate = 0x10000;

/**
 * Returns the first rate of edits at which media are not played as they are; 0: one picture stands still (§8.6.6); `null`: all are. Some writers put 1 for 1.0, or 0 in all edits.
 *
 * @param rates Fixed point, 16 bits of them after it.
 */
function otherRate(rates: readonly number[]): number | null {
  const isUnset = rates.every((rate) => rate === 0);
  const other = rates.find((rate) => rate !== usualRate && rate !== 1);
  return isUnset || other === undefined ? null : other / usualRate;
}

/**
 * Checks that the edits of tracks whose samples are taken for another file present media at their own speed: only such a file can be made.
 *
 * @throws ServiceError `format_unavailable`
 */
export function requireUsualRates(tracks: readonly { rate: number | null }[]): void {
  const other = tracks.find(({ rate }) => rate !== null)?.rate;
  if (other === undefined) return;
  const rule = `its edit list ("elst") plays media at ${other} times their speed, and only 1 can be put into another file`;
  throw new ServiceError("format_unavailable", `the MP4 has a track with media of another speed: ${rule}`);
}

/** Samples that are presented, and those before and after them. */
type Gapless = readonly [before: number, after: number, presented: number];

/** Reads what iTunes and encoders like it say of the audio of a file without edits: `iTunSMPB`, in hexadecimal numbers; `null`: nothing. */
export function readGapless(bytes: Uint8Array, moov: Box): Gapless | null {
  const { body, end } = findChild(bytes, moov, "udta") ?? { body: 0, end: 0 };
  const text = Buffer.from(bytes.subarray(body, end)).toString("latin1");
  const found = /iTunSMPB.{4}data.{8} [0-9A-F]{8} ([0-9A-F]{8}) ([0-9A-F]{8}) ([0-9A-F]{16})/s.exec(text);
  return found === null ? null : [toNumber(found[1]!), toNumber(found[2]!), toNumber(found[3]!)];
}

const toNumber = (digits: string): number => Number.parseInt(digits, 16);

/** Returns the edit that it stands for; none if it is not of a track that lasts so long: others may have changed the media. */
export function gaplessEdits(gapless: Gapless | null, durationTicks: number): Edit[] {
  const [before, after, presented] = gapless ?? [0, 0, 0];
  if (presented === 0 || before + presented + after !== durationTicks) return [];
  return [{ mediaTicks: before, durationTicks: presented, emptyTicks: 0 }];
}
