import { ServiceError } from "../../model/errors.ts";
import type { SubtitleRole } from "../../model/entry.ts";
import { mp4ToBcp47 } from "../../remux/language.ts";
import { elementsIn, ids, unsignedIn } from "../../remux/matroska/elements.ts";
import { type MatroskaTrack, readHeader } from "../../remux/matroska/tracks.ts";
import type { Box } from "../../remux/mp4/boxes.ts";
import { boxAt, childBoxes, codeAt, numbersInFile, type NumberSource } from "../../remux/mp4/read/number-source.ts";
import { readMpegTsSubtitles } from "../../remux/mpeg-ts/summary.ts";
import { type OpenFile, openFile, readAt } from "../../remux/open-file.ts";
import { sniffContainer } from "../../remux/sniff.ts";
import type { Cue, TextTrack } from "../../remux/additions.ts";
import { matroskaTextCodecs, openMatroskaTracks } from "./matroska-track.ts";
import { chapterTrackIds } from "../../remux/mp4/read/headers.ts";
import { type CountBytes, mp4TextCodecs, openMp4Tracks } from "./mp4-track.ts";

/** A track of subtitles within media. */
export interface OwnTrack extends Pick<TextTrack, "language" | "name" | "role"> {
  /** Of the track in its file. */
  number: number;
  /** What people call it. */
  codec: string;
  /** Its text can be read. */
  isText: boolean;
}

const maxTracks = 60;

/**
 * Returns the tracks of subtitles that an MP4, WebM or Matroska file or a transport stream has, as its header says; of damaged and other files none.
 *
 * @throws the file system's own errors.
 */
export function listOwnTracks(path: string): OwnTrack[] {
  using file = openFile(path);
  const source = numbersInFile(file.fd);
  try {
    const header = readHeader(source);
    const inMatroska = header?.tracks.flatMap((track) => matroskaSubtitles(source, track));
    const found = inMatroska ?? transportSubtitles(path, file) ?? mp4Subtitles(source);
    return found.slice(0, maxTracks);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return [];
  }
}

/**
 * Returns a function for each of these tracks of an open file that reads its cues, in order, with the times of the file. Files that follow the
 * first one have further fragments of an MP4.
 *
 * @throws ServiceError `upstream_invalid`, here and later, if it is damaged; the file system's own errors; `signal.reason`
 */
export async function openOwnTracks(
  [file, ...further]: readonly [OpenFile, ...OpenFile[]],
  tracks: readonly OwnTrack[],
  signal: AbortSignal,
): Promise<ReadonlyMap<number, (count: CountBytes) => Iterable<Cue>>> {
  const numbers = tracks.map(({ number }) => number);
  const isMatroska = readHeader(numbersInFile(file.fd)) !== undefined;
  return isMatroska ? openMatroskaTracks(file, numbers, signal) : openMp4Tracks(file, numbers, further);
}

/** What people call them, by the CodecID of Matroska or the sample entry of MP4. */
const names: Readonly<Record<string, string>> = {
  "S_TEXT/UTF8": "SubRip",
  "S_TEXT/ASCII": "SubRip",
  "S_TEXT/ASS": "SubStation Alpha",
  "S_TEXT/SSA": "SubStation Alpha",
  "S_TEXT/WEBVTT": "WebVTT",
  "D_WEBVTT/SUBTITLES": "WebVTT",
  "D_WEBVTT/CAPTIONS": "WebVTT",
  "S_HDMV/PGS": "PGS pictures",
  S_VOBSUB: "VobSub pictures",
  S_DVBSUB: "DVB pictures",
  tx3g: "3GPP timed text",
  text: "QuickTime text",
  wvtt: "WebVTT",
  stpp: "TTML",
  c608: "CEA-608 captions",
  c708: "CEA-708 captions",
  mp4s: "VobSub pictures",
};

const nameOf = (codec: string): string => names[codec] ?? codec.replaceAll(/[^\w./-]/g, "?").slice(0, 40);

function matroskaSubtitles(source: NumberSource, track: MatroskaTrack): OwnTrack[] {
  const { number, codecId, language, name, entry } = track;
  const isSubtitles = codecId.startsWith("S_") || /^D_WEBVTT\/(?:SUBTITLES|CAPTIONS)$/.test(codecId);
  if (!isSubtitles) return [];
  const children = [...elementsIn(source, entry)];
  const isSet = (flag: number) => children.some((child) => child.id === flag && unsignedIn(source, child) === 1);
  const isForDeaf = codecId === "D_WEBVTT/CAPTIONS" || isSet(ids.flagHearingImpaired);
  const role = isSet(ids.flagForced) ? "forced" : isForDeaf ? "captions" : "subtitles";
  return [{ number, language, name, role, codec: nameOf(codecId), isText: matroskaTextCodecs.has(codecId) }];
}

function transportSubtitles(path: string, file: OpenFile): OwnTrack[] | undefined {
  if (sniffContainer(readAt(file, 0, sniffedBytes)) !== "mpeg-ts") return undefined;
  return readMpegTsSubtitles(path).map((track, number) => {
    return { number, name: "", role: "subtitles", isText: false, ...track };
  });
}

const sniffedBytes = 4096;

/** Handlers of text and of pictures of text (ISO/IEC 14496-12 §12.5, §12.6, QuickTime, and that of VobSub). */
const handlers: ReadonlySet<string> = new Set(["text", "subt", "sbtl", "clcp", "subp"]);

function mp4Subtitles(source: NumberSource): OwnTrack[] {
  const tracks: OwnTrack[] = [];
  const [moov] = childBoxes(source, { body: 0, end: source.size }, "moov");
  for (const trak of moov === undefined ? [] : childBoxes(source, moov, "trak")) {
    const [header] = childBoxes(source, trak, "tkhd");
    const [media] = childBoxes(source, trak, "mdia");
    const [handler, details, table] = [["hdlr"], ["mdhd"], ["minf", "stbl", "stsd"]].map((path) =>
      path.reduce<Box | undefined>((box, type) => box && childBoxes(source, box, type).next().value, media),
    );
    const entry = table && boxAt(source, table.body + 8, table.end);
    if (header === undefined || handler === undefined || details === undefined || entry === undefined) continue;
    const type = codeAt(source, handler.body + 8);
    if (!handlers.has(type)) continue;
    const number = source.u32(header.body + (source.u8(header.body) === 1 ? 20 : 12));
    const language = mp4ToBcp47(source.u16(details.body + (source.u8(details.body) === 1 ? 32 : 20)));
    const role = roleOf(source, { trak, handler: type, entry });
    const isText = mp4TextCodecs.has(entry.type);
    tracks.push({ number, language, name: "", role, codec: nameOf(entry.type), isText });
  }
  const chapters = moov === undefined ? new Set<number>() : chapterTrackIds(source, moov);
  return tracks.filter(({ number }) => !chapters.has(number));
}

/** All samples are shown though subtitles are off (3GPP TS 26.245 §5.16). */
const allForced = 0x8000_0000;

/** By its `kind` (ISO/IEC 14496-12 §8.10.4) in words of DASH, its handler, or the flags of timed text. */
function roleOf(
  source: NumberSource,
  { trak, handler, entry }: { trak: Box; handler: string; entry: Box },
): SubtitleRole {
  for (const data of childBoxes(source, trak, "udta")) {
    for (const { body, end } of childBoxes(source, data, "kind")) {
      const length = Math.min(200, end - body - 4);
      const words = String.fromCharCode(...Array.from({ length }, (_, i) => source.u8(body + 4 + i))).split("\0");
      if (words[1]?.startsWith("forced")) return "forced";
      if (words[1] === "caption") return "captions";
    }
  }
  const isForced = entry.type === "tx3g" && entry.end - entry.body >= 12 && source.u32(entry.body + 8) >= allForced;
  return handler === "clcp" ? "captions" : isForced ? "forced" : "subtitles";
}
