import { nameCodec, specificOf } from "../codec-name.ts";
import { createMp4Demuxer } from "../mp4/read/demuxer.ts";
import type { Sample, SampleSink, TrackFormat } from "../samples.ts";
import { createTimelines } from "../timelines.ts";
import {
  assertNoPauses,
  type AudioFile,
  type AudioTrack,
  damagedAudioError,
  type OpenAudioFile,
} from "./audio-file.ts";

/**
 * Copies the packets of the one audio track of an MP4 file. Each step copies a bounded part. Returns false if it is not the only
 * one, there is video, or its codec has no file of its own.
 *
 * @throws ServiceError `upstream_invalid` if the file is damaged, presents several parts of the track, or has pauses in it.
 */
export function* extractFromMp4(path: string, openAudio: OpenAudioFile): Generator<undefined, boolean> {
  const sink = createPacketSink(openAudio);
  let left = 0;
  const onTracks = (_: number, leftAudio: number) => void (left = leftAudio);
  const demuxer = createMp4Demuxer({ sink, timelines: createTimelines(), kinds: ["video", "audio"], onTracks });
  for (const _ of demuxer.readFile(path, { timeline: 0, offsetS: null })) {
    if (left > 0 || !sink.isWanted()) return false;
    yield;
  }
  return sink.finish();
}

/** A longer part that is not presented at the start is no delay of an encoder. */
const maxDelayS = 1;
/** Edits count ticks of the movie: often milliseconds. */
const editRoundingS = 0.001;

function createPacketSink(openAudio: OpenAudioFile) {
  let format: TrackFormat | undefined;
  let hasOther = false;
  let audio: { file: AudioFile; delayS: number; firstDts: number } | undefined;
  let endTicks = 0;
  let lastTicks = 0;

  function open(first: Sample): Exclude<typeof audio, undefined> {
    const { edits, timescale, sampleEntry } = format!;
    const delayS = (edits?.[0]?.mediaTicks ?? -first.pts) / timescale;
    if (delayS > maxDelayS || (edits?.length ?? 0) > 1) throw damagedAudioError("only parts of it are presented");
    const file = openAudio({ ...readEntry(sampleEntry)!, delayS: delayS > 0 ? delayS : null });
    return { file, delayS: Math.max(0, delayS), firstDts: first.dts };
  }

  const sink: SampleSink = {
    setFormat(given) {
      hasOther ||= format !== undefined || given.kind === "video" || readEntry(given.sampleEntry) === undefined;
      format = given;
      return 0;
    },
    write(_, sample) {
      if (hasOther) return;
      audio ??= open(sample);
      audio.file.add(sample.data);
      lastTicks = sample.dts - audio.firstDts;
      endTicks = lastTicks + sample.duration;
    },
  };
  return {
    ...sink,
    isWanted: () => !hasOther,
    finish(): boolean {
      if (hasOther || audio === undefined || format === undefined) return false;
      const { delayS } = audio;
      const shownS = (format.edits?.[0]?.durationTicks ?? Infinity) / format.timescale;
      const endS = Math.min(endTicks / format.timescale, delayS + shownS);
      const lastS = lastTicks / format.timescale;
      audio.file.finish((lastedS) => {
        assertNoPauses(lastedS, lastS);
        return lastedS - endS > editRoundingS ? lastedS - endS : 0;
      });
      return true;
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
  if (head.length < 19) return head;
  head.subarray(10, 12).swap16();
  head.subarray(12, 16).swap32();
  head.subarray(16, 18).swap16();
  return head;
}
