import { nameCodec, specificOf } from "../codec-name.ts";
import { createMp4Demuxer } from "../mp4/read/demuxer.ts";
import { swapOpusNumbers } from "../mp4/sample-entry.ts";
import type { FoundTracks, Sample, SampleSink, TrackFormat } from "../samples.ts";
import { Timelines } from "../timelines.ts";
import { canStateDelay } from "./mp3.ts";
import { opusRate, opusSamples } from "../codecs/opus.ts";
import { assertNoPauses, type AudioTrack, damagedAudioError, maxPauseS, type OpenAudioFile } from "./audio-file.ts";

/**
 * Copies the packets of the one audio track of an MP4 file. Each step copies a bounded part. Returns false if it is not the only
 * one, there is video, or its codec has no file of its own.
 *
 * @param isCut Only the parts that the edits present are wanted; their ends may move by a part of a packet.
 * @throws ServiceError `upstream_invalid` if the file is damaged, presents several parts of a track that is not cut, or has
 *   pauses in it.
 */
export function* extractFromMp4(path: string, openAudio: OpenAudioFile, isCut: boolean): Generator<undefined, boolean> {
  const sink = createPacketSink(openAudio, isCut);
  let left = 0;
  const onTracks = (found: FoundTracks) => void (left = found.left.audio);
  const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds: ["video", "audio"], onTracks });
  for (const _ of demuxer.readFile({ path }, { timeline: 0, offsetS: null })) {
    if (left > 0 || !sink.isWanted()) return false;
    yield;
  }
  return sink.finish();
}

/** A longer part that is not presented at the start is no delay of an encoder. */
const maxDelayS = 1;
/** Edits count ticks of the movie: often milliseconds. */
const editRoundingS = 0.001;

function createPacketSink(openAudio: OpenAudioFile, isCut: boolean) {
  let format: TrackFormat | undefined;
  let hasOther = false;
  let audio: AudioPackets | undefined;
  const sink: SampleSink = {
    setFormat(given) {
      hasOther ||= format !== undefined || given.kind === "video" || readEntry(given.sampleEntry) === undefined;
      format = given;
      return 0;
    },
    write(_, sample) {
      if (hasOther) return;
      audio ??= (isCut ? openParts : openWhole)(format!, sample, openAudio);
      audio.add(sample);
    },
  };
  return {
    ...sink,
    isWanted: () => !hasOther,
    finish(): boolean {
      if (hasOther || audio === undefined) return false;
      audio.finish();
      return true;
    },
  };
}

interface AudioPackets {
  add(sample: Sample): void;
  finish(): void;
}

function openWhole(format: TrackFormat, first: Sample, openAudio: OpenAudioFile): AudioPackets {
  const { edits, timescale, language } = format;
  const delayS = delayOf(format, first);
  if ((edits?.length ?? 0) > 1) throw damagedAudioError("only parts of it are presented");
  const track = readEntry(format.sampleEntry)!;
  const file = openAudio({ ...track, delayS: delayS > 0 ? delayS : null, language });
  const leftOutS = leftOutOf(track, format, first);
  let [lastTicks, endTicks, longestTicks] = [0, 0, 0];
  return {
    add({ data, dts, duration }) {
      file.add(data);
      lastTicks = dts - first.dts;
      endTicks = lastTicks + duration;
      longestTicks = Math.max(longestTicks, duration);
    },
    finish() {
      const shownS = (edits?.[0]?.durationTicks ?? Infinity) / timescale;
      const shownEndS = Math.min(endTicks / timescale, Math.max(0, delayS) + shownS);
      // A packet that is the last one, too, is cut at its end.
      const endS = shownEndS + (lastTicks > 0 ? leftOutS : 0);
      file.finish((lastedS) => {
        assertNoPauses(lastedS, lastTicks / timescale);
        const trimmedS = lastedS - endS;
        // Such a file can leave out samples of its last packet only.
        if (trimmedS > longestTicks / timescale + maxPauseS) throw damagedAudioError("only parts of it are presented");
        return trimmedS > editRoundingS ? trimmedS : 0;
      });
    },
  };
}

/** Returns what of the first packet of Opus its duration leaves out, as a decoder does not present it, seconds: so do GStreamer and mediabunny. */
function leftOutOf(
  { codec }: Pick<AudioTrack, "codec">,
  { timescale }: TrackFormat,
  { data, duration }: Sample,
): number {
  const lastsS = codec === "opus" ? opusSamples(data) / opusRate : 0;
  return Math.max(0, lastsS - duration / timescale);
}

/** @throws ServiceError `upstream_invalid` */
function delayOf({ edits, timescale }: TrackFormat, first: Sample): number {
  const delayS = (edits?.[0]?.mediaTicks ?? -first.pts) / timescale;
  if (delayS > maxDelayS) throw damagedAudioError("only parts of it are presented");
  return delayS;
}

/**
 * Writes the packets that the edits present any of. Opus, MP3 and Vorbis have those before the first part too, and say what of the last
 * one is presented, Opus and MP3 also what of the first ones; FLAC presents whole packets.
 */
function openParts(format: TrackFormat, first: Sample, openAudio: OpenAudioFile): AudioPackets {
  const { edits = [], timescale, language } = format;
  const track = readEntry(format.sampleEntry)!;
  const delayS = delayOf(format, first);
  const shown = edits.map(({ mediaTicks: from, durationTicks }) => ({ from, to: from + durationTicks }));
  const parts = shown.length > 0 ? shown : [{ from: 0, to: Infinity }];
  const isExact = track.codec === "opus" || (track.codec === "mp3" && canStateDelay(first.data, delayS));
  // Vorbis needs the packet before the first one, and says where the last one ends.
  const hasEnds = isExact || track.codec === "vorbis";
  // At the start, the configuration says it.
  const isStated = isExact && delayS > editRoundingS;
  const statedS = isStated ? delayS + leftOutOf(track, format, first) : null;
  const file = openAudio({ ...track, delayS: statedS, language });
  let [leftOutTicks, lastTicks, trimmedS] = [0, 0, 0];
  return {
    add({ data, dts, duration }) {
      const from = dts - first.dts;
      const to = from + duration;
      const isShown = parts.some((part) => {
        const roundingTicks = Math.min(editRoundingS * timescale, (part.to - part.from) / 2);
        return to - part.from > roundingTicks && part.to - from > roundingTicks;
      });
      if (isShown || (hasEnds && from <= parts[0]!.from)) {
        trimmedS = file.add(data) - (Math.min(to, parts.at(-1)!.to) - from) / timescale;
        lastTicks = from - leftOutTicks;
      } else leftOutTicks += duration;
    },
    finish() {
      file.finish((lastedS) => {
        assertNoPauses(lastedS, lastTicks / timescale);
        return hasEnds && trimmedS > editRoundingS ? trimmedS : 0;
      });
    },
  };
}

/** Returns the codec of a sample entry, and its configuration as Matroska has it; undefined if it has no file of its own. */
function readEntry(sampleEntry: Uint8Array): Pick<AudioTrack, "codec" | "configuration"> | undefined {
  const bytes = Buffer.from(sampleEntry);
  const type = bytes.toString("latin1", 4, 8);
  if (type === ".mp3" || nameCodec(bytes) === "MPEG audio") return { codec: "mp3", configuration: Buffer.alloc(0) };
  const specific = specificOf(bytes, vorbisType);
  if (specific !== undefined) return { codec: "vorbis", configuration: Buffer.from(specific) };
  const [opus, flac] = [contentOf(bytes, "dOps"), contentOf(bytes, "dfLa")];
  if (type === "Opus" && opus !== undefined) return { codec: "opus", configuration: opusHead(opus) };
  if (type !== "fLaC" || flac === undefined) return undefined;
  // Version and flags come before the metadata blocks.
  return { codec: "flac", configuration: Buffer.concat([Buffer.from("fLaC"), flac.subarray(4)]) };
}

/** The object type that stands for Vorbis (https://mp4ra.org/registered-types/object-types). */
const vorbisType = 0xdd;

/** Returns the content of a box in a sample entry; undefined if there is none. */
function contentOf(entry: Buffer, type: string): Buffer | undefined {
  const at = entry.indexOf(type, 8, "latin1");
  return at < 0 ? undefined : entry.subarray(at + 4, at - 4 + entry.readUInt32BE(at - 4));
}

/** Returns the header of Ogg, whose numbers have the other order (Opus in ISOBMFF §4.3.2, RFC 7845 §5.1). */
function opusHead(content: Buffer): Buffer {
  const head = Buffer.concat([Buffer.from("OpusHead\x01"), content.subarray(1)]);
  if (head.length >= 19) swapOpusNumbers(head.subarray(10));
  return head;
}
