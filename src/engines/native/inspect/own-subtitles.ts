import { ServiceError } from "../../../model/errors.ts";
import { mp4ToBcp47 } from "../../../remux/language.ts";
import { readHeader } from "../../../remux/matroska/tracks.ts";
import type { Box } from "../../../remux/mp4/boxes.ts";
import { childrenOf, readBox, typeAt } from "../../../remux/mp4/read/check-tables.ts";
import { type NumberSource, numbersInFile } from "../../../remux/mp4/read/number-source.ts";
import { openFile } from "../../../remux/open-file.ts";
import type { OwnSubtitles } from "../../engine.ts";
import { printable } from "./describe.ts";

const maxTracks = 60;

/**
 * Returns the tracks of subtitles that an MP4, WebM or Matroska file has, as its header says; of damaged and other files none.
 *
 * @throws the file system's own errors.
 */
export function readOwnSubtitles(path: string): OwnSubtitles[] {
  using file = openFile(path);
  const source = numbersInFile(file.fd);
  try {
    const header = readHeader(source);
    const found = header === undefined ? mp4Subtitles(source) : header.tracks.flatMap(matroskaSubtitles);
    return [...found].slice(0, maxTracks);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return [];
  }
}

/** What people call them, by the CodecID of Matroska or the sample entry of MP4. */
const names: Readonly<Record<string, string>> = {
  "S_TEXT/UTF8": "SubRip",
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
  mp4s: "VobSub pictures",
};

const nameOf = (codec: string): string => names[codec] ?? printable(codec);

function matroskaSubtitles({ codecId, language }: { codecId: string; language: string | null }): OwnSubtitles[] {
  const isText = codecId.startsWith("S_") || /^D_WEBVTT\/(?:SUBTITLES|CAPTIONS)$/.test(codecId);
  return isText ? [{ language, codec: nameOf(codecId) }] : [];
}

/** Handlers of text and of pictures of text (ISO/IEC 14496-12 §12.5, §12.6, QuickTime, and that of VobSub). */
const handlers: ReadonlySet<string> = new Set(["text", "subt", "sbtl", "clcp", "subp"]);

function mp4Subtitles(source: NumberSource): OwnSubtitles[] {
  const chapters = new Set<number>();
  const tracks: (OwnSubtitles & { id: number })[] = [];
  const [moov] = childrenOf(source, { body: 0, end: source.size }, "moov");
  for (const trak of moov === undefined ? [] : childrenOf(source, moov, "trak")) {
    const [header] = childrenOf(source, trak, "tkhd");
    const [media] = childrenOf(source, trak, "mdia");
    const [handler, details, table] = [["hdlr"], ["mdhd"], ["minf", "stbl", "stsd"]].map((path) =>
      path.reduce<Box | undefined>((box, type) => box && childrenOf(source, box, type).next().value, media),
    );
    for (const references of childrenOf(source, trak, "tref")) {
      for (const { body, end } of childrenOf(source, references, "chap")) {
        for (let at = body; at + 4 <= end; at += 4) chapters.add(source.u32(at));
      }
    }
    const entry = table && readBox(source, table.body + 8, table.end);
    if (header === undefined || handler === undefined || details === undefined || entry === undefined) continue;
    if (!handlers.has(typeAt(source, handler.body + 8))) continue;
    const id = source.u32(header.body + (source.u8(header.body) === 1 ? 20 : 12));
    const language = mp4ToBcp47(source.u16(details.body + (source.u8(details.body) === 1 ? 32 : 20)));
    tracks.push({ id, language, codec: nameOf(entry.type) });
  }
  return tracks.filter(({ id }) => !chapters.has(id)).map(({ language, codec }) => ({ language, codec }));
}
