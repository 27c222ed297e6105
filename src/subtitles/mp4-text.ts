import { type Cue, moveCue, moveInnerTimes } from "../remux/additions.ts";
import { openFullBox } from "../remux/mp4/box-reader.ts";
import { type Box, boxesIn, childrenOf, damagedError, findChild, getChild, typeAt } from "../remux/mp4/boxes.ts";
import { readEdits, readMediaHeader, readMovieHeader } from "../remux/mp4/read/headers.ts";
import { noDefaults, readDefaults, type SampleDefaults } from "../remux/mp4/read/init.ts";
import { joinCues } from "./join.ts";
import { atMostMaxCues, decodePieces, decodeSubtitles, invalidSubtitlesError, linesOf, maxCues } from "./text.ts";
import { readTtml } from "./ttml/ttml.ts";
import { readVttTime } from "./timed-text.ts";
import { createVttStyles } from "./vtt-header.ts";

/** What the samples of a track are read with. */
interface TextFormat {
  codec: "wvtt" | "stpp";
  styles: ReturnType<typeof createVttStyles>;
}

/** A track of text, as an init section describes it. */
interface TextTrack extends TextFormat {
  timescale: number;
  defaults: SampleDefaults;
  /** How much later media times are than presentation times, by its edit list, seconds. */
  shiftS: number;
}

const maxSamples = 500_000;
/** Of a sample entry of text, before its boxes: its own header, and a reference of 8 bytes. */
const entryHeader = 16;

/**
 * Reads segments of text in fragmented MP4 (ISO/IEC 14496-30): WebVTT or TTML in each sample. Times are those of the track's presentation.
 *
 * @throws ServiceError `upstream_invalid` for another codec, a damaged segment or more than 200,000 cues.
 */
export function createMp4TextReader() {
  let track: TextTrack | undefined;
  return {
    read(segment: Uint8Array): Cue[] {
      const samples: Cue[][] = [];
      let count = 0;
      for (const box of boxesIn(segment)) {
        if (box.type === "moov") track = readTrack(segment, box);
        if (box.type !== "moof") continue;
        if (track === undefined) throw damagedError("a fragment of text comes before its init section");
        const { shiftS } = track;
        for (const sample of samplesOf(segment, box, track)) {
          const cues = readSample(segment, sample, track);
          if ((count += cues.length) > maxCues) throw invalidSubtitlesError(`a segment has more than ${maxCues} cues`);
          samples.push(cues.map((cue) => moveCue(cue, -shiftS)));
        }
      }
      // A cue that lasts while others begin is in several samples.
      return joinCues(samples);
    },
  };
}

function readTrack(bytes: Uint8Array, moov: Box): TextTrack {
  const trak = getChild(bytes, moov, "trak");
  const media = getChild(bytes, trak, "mdia");
  const { timescale } = readMediaHeader(bytes, getChild(bytes, media, "mdhd"));
  const table = getChild(bytes, media, "minf", "stbl", "stsd");
  const codec = typeAt(bytes, table.body + 12);
  if (codec !== "wvtt" && codec !== "stpp") throw invalidSubtitlesError(`the codec of their MP4 is ${codec}`);
  const format = readTextFormat(bytes, table, codec);
  const movie = readMovieHeader(bytes, getChild(bytes, moov, "mvhd"));
  const shiftS = readEdits(bytes, trak, timescale / movie.timescale).shiftTicks / timescale;
  const [defaults = noDefaults] = readDefaults(bytes, moov).values();
  return { ...format, timescale, shiftS, defaults };
}

/** Reads what the sample table (`stsd`) of a track says of its text. */
export function readTextFormat(bytes: Uint8Array, table: Box, codec: TextFormat["codec"]): TextFormat {
  const styles = createVttStyles();
  const boxes = { ...table, body: table.body + 8 + entryHeader };
  const config = codec === "wvtt" ? findChild(bytes, boxes, "vttC") : undefined;
  const start = config === undefined ? "" : decodeSubtitles(bytes.subarray(config.body, config.end));
  for (const line of [...linesOf([start]), ""]) styles.readLine(line);
  return { codec, styles };
}

/** A sample of text: where it is in bytes, and when it is shown. */
interface TextSample {
  start: number;
  end: number;
  startS: number;
  endS: number;
}

function* samplesOf(bytes: Uint8Array, moof: Box, track: TextTrack): Generator<TextSample> {
  const traf = getChild(bytes, moof, "traf");
  const header = openFullBox(bytes, getChild(bytes, traf, "tfhd"));
  const { flags } = header;
  header.u32();
  if (flags & 0x1) header.i64();
  if (flags & 0x2) header.u32();
  const duration = flags & 0x8 ? header.u32() : track.defaults.duration;
  const size = flags & 0x10 ? header.u32() : track.defaults.size;
  const time = findChild(bytes, traf, "tfdt");
  let ticks = time === undefined ? 0 : openFullBox(bytes, time).time();
  let count = 0;
  for (const trun of childrenOf(bytes, traf, "trun")) {
    const run = openFullBox(bytes, trun);
    const { flags: fields } = run;
    const samples = run.u32();
    let at = moof.start + (fields & 0x1 ? run.u32() : moof.end - moof.start + 8);
    if (fields & 0x4) run.u32();
    for (let i = 0; i < samples; i++) {
      if (++count > maxSamples) throw damagedError(`a fragment has more than ${maxSamples} samples`);
      const lasts = fields & 0x100 ? run.u32() : duration;
      const length = fields & 0x200 ? run.u32() : size;
      if (fields & 0x400) run.u32();
      if (fields & 0x800) run.u32();
      if (at + length > bytes.length) throw damagedError("a sample ends after its segment");
      const [startS, endS] = [ticks / track.timescale, (ticks + lasts) / track.timescale];
      yield { start: at, end: at + length, startS, endS };
      at += length;
      ticks += lasts;
    }
  }
}

/** Returns the cues of a sample: those of WebVTT last as long as it; those of TTML have times of their own on the same timeline. */
export function readSample(
  bytes: Uint8Array,
  { start, end, startS, endS }: TextSample,
  { codec, styles }: TextFormat,
): Cue[] {
  if (codec === "stpp") {
    const shown = atMostMaxCues(readTtml(decodePieces(bytes.subarray(start, end)))).toArray();
    return shown.map((cue) => ({ ...cue, startS: Math.max(cue.startS, startS), endS: Math.min(cue.endS, endS) }));
  }
  const cues: Cue[] = [];
  for (const box of boxesIn(bytes, start, end)) {
    if (box.type !== "vttc") continue;
    const textIn = (type: string) => {
      const child = findChild(bytes, box, type);
      return child === undefined ? "" : decodeSubtitles(bytes.subarray(child.body, child.end));
    };
    const written = textIn("payl").replaceAll(/\r\n?/g, "\n").trim();
    if (written === "") continue;
    const sampleS = readVttTime(textIn("ctim").trim());
    const text = sampleS === null ? written : moveInnerTimes(written, startS - sampleS);
    cues.push({ startS, endS, text: styles.replaceIn(text), settings: textIn("sttg").trim() });
  }
  return cues;
}
