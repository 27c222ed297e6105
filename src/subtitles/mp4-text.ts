import { type Cue, moveCue, moveInnerTimes } from "../remux/additions.ts";
import { type Box, boxesIn, damagedError, findChild, getChild, typeAt } from "../remux/mp4/boxes.ts";
import { type FragmentContext, readFragment } from "../remux/mp4/read/fragment.ts";
import { createBudget } from "../remux/mp4/read/indexed-sample.ts";
import { readMovie, readTrackTimes, type TimedTrack } from "../remux/mp4/read/init.ts";
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
type TextTrack = TextFormat & TimedTrack;

type ReadContext = Pick<FragmentContext<TextTrack>, "nextDts" | "budget">;

/** Of a segment. */
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
  const nextDts = new Map<TextTrack, number>();
  return {
    read(segment: Uint8Array): Cue[] {
      const context = { nextDts, budget: createBudget(segment.length, maxSamples) };
      const samples: Cue[][] = [];
      let count = 0;
      for (const box of boxesIn(segment)) {
        if (box.type === "moov") track = readTrack(segment, box);
        if (box.type !== "moof") continue;
        if (track === undefined) throw damagedError("a fragment of text comes before its init section");
        const shiftS = track.shiftTicks / track.timescale;
        for (const sample of samplesOf(segment, box, track, context)) {
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
  const table = getChild(bytes, trak, "mdia", "minf", "stbl", "stsd");
  const codec = typeAt(bytes, table.body + 12);
  if (codec !== "wvtt" && codec !== "stpp") throw invalidSubtitlesError(`the codec of their MP4 is ${codec}`);
  return { ...readTextFormat(bytes, table, codec), ...readTrackTimes(bytes, trak, readMovie(bytes, moov)) };
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

function samplesOf(bytes: Uint8Array, moof: Box, track: TextTrack, context: ReadContext): TextSample[] {
  const { budget, nextDts } = context;
  const left = budget.samples;
  const samples = readFragment(bytes, moof, { tracks: [track], nextDts, budget });
  if (samples.length === 0 && budget.samples < left) {
    throw damagedError(`a fragment has no samples of track ${track.id}, the one of its init section`);
  }
  return samples.map(({ offset: start, size, pts, duration }) => {
    const end = start + size;
    if (start < 0 || end > bytes.length) throw damagedError("a sample is not within its segment");
    return { start, end, startS: pts / track.timescale, endS: (pts + duration) / track.timescale };
  });
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
