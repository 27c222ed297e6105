import { chosenBlocks, type ChosenTracks, selectAll } from "../matroska/chosen-tracks.ts";
import { isCopiable } from "../matroska/copy.ts";
import { findElement, ids, readBytes } from "../matroska/elements.ts";
import { framesIn } from "../matroska/lacing.ts";
import type { MatroskaTrack } from "../matroska/tracks.ts";
import { assertNoPauses, type AudioTrack, damagedAudioError, type OpenAudioFile } from "./audio-file.ts";

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
export function* extractFromMatroska(fd: number, openAudio: OpenAudioFile): Generator<undefined, boolean> {
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
