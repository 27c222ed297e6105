import { open } from "node:fs/promises";
import { isUpstreamError } from "../../model/errors.ts";
import { type Additions, boundAdditions } from "../additions.ts";
import { openFile, readFileStart } from "../open-file.ts";
import { sniffContainer } from "../sniff.ts";
import { runSteps } from "../steps.ts";
import { assertNoPauses, type AudioTrack, damagedAudioError, type OpenAudioFile } from "./audio-file.ts";
import { openFlacFile } from "./flac.ts";
import { extractFromMp4 } from "./from-mp4.ts";
import { openMp3File } from "./mp3.ts";
import { openOpusFile, openVorbisFile } from "./ogg.ts";
import { chosenBlocks, type ChosenTracks, selectAll } from "../matroska/blocks.ts";
import { isCopiable } from "../matroska/copy.ts";
import { findElement, ids, readBytes } from "../matroska/elements.ts";
import { framesIn } from "../matroska/frames.ts";
import type { MatroskaTrack } from "../matroska/tracks.ts";
import { readMp3Table } from "../packed-audio/mp3-table.ts";

const openers = { opus: openOpusFile, vorbis: openVorbisFile, mp3: openMp3File, flac: openFlacFile };
const headBytes = 4096;

/**
 * Copies the audio of a WebM, Matroska or MP4 file into a file of its own kind, packet by packet: Opus and Vorbis into Ogg, MP3 and FLAC
 * as they are. What is not presented at its start and end is the same. Returns what it has copied; `null` if it has another codec or several tracks,
 * says what such a file cannot, or is damaged.
 *
 * @param options `durationS`: of the source, Infinity if unknown. `isCut`: an MP4 file was cut, of which only what its edits
 *   present is wanted; default false.
 * @throws the file system's own errors; `signal.reason`
 */
export async function extractAudio(
  source: string,
  target: string,
  given: Additions,
  { durationS, isCut = false, signal }: { durationS: number; isCut?: boolean; signal: AbortSignal },
): Promise<CopiedAudio | null> {
  const container = sniffContainer(readFileStart(source, Buffer.alloc(headBytes)));
  if (container !== "webm" && container !== "mp4") return null;
  using file = openFile(source);
  await using made = await open(target, "w");
  const { tags, ...rest } = boundAdditions(given, durationS);
  const copied = { packets: 0, tables: 0 };
  const openAudio: OpenAudioFile = (track) => {
    const additions = { ...rest, tags: { ...tags, language: track.language ?? tags.language } };
    const opened = openers[track.codec](track, { fd: made.fd, additions, durationS, isCut });
    return {
      ...opened,
      add(packet) {
        const isTable = track.codec === "mp3" && copied.packets === 0 && readMp3Table(packet, 0) !== null;
        copied.packets += 1;
        if (isTable) copied.tables += 1;
        return opened.add(packet);
      },
    };
  };
  try {
    const steps =
      container === "webm" ? extractFromMatroska(file.fd, openAudio) : extractFromMp4(source, openAudio, isCut);
    return (await runSteps(steps, signal)) ? copied : null;
  } catch (error) {
    if (isUpstreamError(error)) return null;
    throw error;
  }
}

/** What an audio file got of its source. */
export interface CopiedAudio {
  packets: number;
  /** How many of these have a table of the others (MP3), and no audio. */
  tables: number;
}

/** By CodecID. */
const codecs = new Map<string, AudioTrack["codec"]>([
  ["A_OPUS", "opus"],
  ["A_VORBIS", "vorbis"],
  ["A_MPEG/L3", "mp3"],
  ["A_FLAC", "flac"],
]);
const stepBlocks = 256;

/**
 * Copies the packets of the one audio track of an open WebM or Matroska file. Each step copies a bounded part. Returns false if it is not
 * the only one, there is video, or its codec has no file of its own.
 *
 * @throws ServiceError `upstream_invalid` if the file is damaged, has pauses in its audio, or leaves out padding within it.
 */
function* extractFromMatroska(fd: number, openAudio: OpenAudioFile): Generator<undefined, boolean> {
  const all = selectAll(fd);
  const media = all?.tracks.filter(({ kind }) => kind !== null) ?? [];
  const [track] = media;
  const codec = track && codecs.get(track.codecId);
  if (all === undefined || track === undefined || codec === undefined || media.length > 1) return false;
  if (!isCopiable([{ ...all, tracks: media }])) return false;
  const { codecDelayNs, language } = track;
  // That of Opus is in its header too.
  const delayS = codecDelayNs > 0 && codec !== "opus" ? codecDelayNs / 1e9 : null;
  const audio = openAudio({ codec, configuration: configurationOf(all, track), delayS, language });
  let discardNs = 0;
  let count = 0;
  let [firstTicks, lastTicks] = [Infinity, -Infinity];
  for (const block of chosenBlocks({ ...all, tracks: media })) {
    if (discardNs > 0) throw damagedAudioError("only parts of it are presented");
    for (const packet of framesIn(readBytes(fd, block), block.flags)) audio.add(packet);
    ({ discardNs } = block);
    firstTicks = Math.min(firstTicks, block.ticks);
    lastTicks = Math.max(lastTicks, block.ticks);
    if (++count % stepBlocks === 0) yield;
  }
  audio.finish((lastedS) => {
    assertNoPauses(lastedS, ((lastTicks - firstTicks) * all.header.timestampScale) / 1e9);
    return Math.max(0, discardNs) / 1e9;
  });
  return true;
}

function configurationOf({ fd, source }: ChosenTracks, { entry }: MatroskaTrack): Buffer {
  const found = findElement(source, entry, ids.codecPrivate);
  return found === undefined ? Buffer.alloc(0) : Buffer.from(readBytes(fd, found));
}
