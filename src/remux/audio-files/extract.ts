import { open } from "node:fs/promises";
import { isUpstreamError } from "../../model/errors.ts";
import { type Additions, boundAdditions } from "../additions.ts";
import { openFile, readFileStart } from "../open-file.ts";
import { sniffContainer } from "../sniff.ts";
import { runSteps } from "../steps.ts";
import type { OpenAudioFile } from "./audio-file.ts";
import { openFlacFile } from "./flac.ts";
import { extractFromMatroska } from "./from-matroska.ts";
import { extractFromMp4 } from "./from-mp4.ts";
import { openMp3File } from "./mp3.ts";
import { openOpusFile, openVorbisFile } from "./ogg.ts";

const openers = { opus: openOpusFile, vorbis: openVorbisFile, mp3: openMp3File, flac: openFlacFile };
const headBytes = 4096;

/**
 * Copies the audio of a WebM, Matroska or MP4 file into a file of its own kind, packet by packet: Opus and Vorbis into Ogg, MP3 and FLAC
 * as they are. What is not presented at its start and end is the same. Returns false if it has another codec or several tracks, says what
 * such a file cannot, or is damaged.
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
): Promise<boolean> {
  const container = sniffContainer(readFileStart(source, Buffer.alloc(headBytes)));
  if (container !== "webm" && container !== "mp4") return false;
  using file = openFile(source);
  await using made = await open(target, "w");
  const { tags, ...rest } = boundAdditions(given, durationS);
  const openAudio: OpenAudioFile = (track) => {
    const additions = { ...rest, tags: { ...tags, language: track.language ?? tags.language } };
    return openers[track.codec](track, { fd: made.fd, additions, durationS, isCut });
  };
  try {
    const steps =
      container === "webm" ? extractFromMatroska(file.fd, openAudio) : extractFromMp4(source, openAudio, isCut);
    return await runSteps(steps, signal);
  } catch (error) {
    if (isUpstreamError(error)) return false;
    throw error;
  }
}
