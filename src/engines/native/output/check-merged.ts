import { fstatSync } from "node:fs";
import type { InputTrack } from "mediabunny";
import type { FileWarning } from "../../../model/file-warnings.ts";
import { printable } from "../inspect/describe.ts";
import {
  chapterTracks,
  encryptedKinds,
  type LocalInput,
  mediabunny,
  openLocalInput,
  unreadTracks,
} from "../inspect/local-input.ts";
import { countPackets, lostPackets } from "./count-packets.ts";
import { leftTracks } from "./file-warnings.ts";
import type { ChosenTracks } from "../../../remux/matroska/blocks.ts";
import { type TrackKind, trackKinds } from "../../../remux/samples.ts";
import type { TrackDetails } from "../../../remux/track-details.ts";
import { usualGapS } from "../sources/fetch-stats.ts";

/** Compares the tracks of a merged file with those of the files that it was merged from: by their ends, and by what they have. */
export async function checkMerged(
  files: readonly LocalInput[],
  sources: readonly InputTrack[],
  target: string,
): Promise<FileWarning[]> {
  using merged = openLocalInput(target);
  const tracks = await merged.input.getTracks();
  const counts = new Map(files.map(({ input, fd }) => [input, countPackets(asReadFile(fd))]));
  const written = countPackets(asReadFile(merged.fd));
  const found = await Promise.all(
    sources.map(async (source): Promise<FileWarning[]> => {
      const { type } = source;
      const number = sources.filter((each) => each.type === type).indexOf(source);
      const track = tracks.filter((candidate) => candidate.type === type)[number];
      if (track === undefined) {
        const message = `the source has ${type}, the file has none`;
        return [{ code: "track_missing", message }];
      }
      const [copy, had = {}] = [written.get(track.id), counts.get(source.input)?.get(source.id)];
      // Packets of PCM have as many samples as a reader likes.
      const isPcm = (await source.getCodec())?.startsWith("pcm") === true;
      const warnings = lostPackets(type, copy, isPcm ? { ...had, packets: undefined } : had);
      const [sourceS, fileS] = [await lastedS(source), await lastedS(track)];
      if (Math.abs(sourceS - fileS) <= usualGapS) return warnings;
      const message = `the ${type} lasts ${fileS.toFixed(1)} s, that of its source ${sourceS.toFixed(1)} s`;
      return [...warnings, { code: "duration_differs", message }];
    }),
  );
  const [sourceLead, lead] = [await leadOf(sources), await leadOf(tracks)];
  if (Math.abs(sourceLead - lead) > longestShiftS) {
    const message = `the tracks start ${lead.toFixed(2)} s apart, those of the source ${sourceLead.toFixed(2)} s`;
    found.push([{ code: "times_changed", message }]);
  }
  return found.flat();
}

const asReadFile = (fd: number) => ({ fd, size: fstatSync(fd).size });

/** Describes the tracks that are in the file of the chosen ones of their kind, whether or not they can be read. */
export async function checkLeft(files: readonly LocalInput[], chosen: readonly InputTrack[]): Promise<FileWarning[]> {
  const count = async (kind: TrackKind): Promise<number> => {
    const file = files.find(({ input }) => input === chosen.find(({ type }) => type === kind)?.input);
    if (file === undefined) return 0;
    const chapters = chapterTracks(file);
    const further = (await file.input.getTracks()).filter(
      (track) => !chosen.includes(track) && !chapters.has(track.id),
    );
    const read = further.filter(({ type }) => type === kind);
    const unread = (await unreadTracks(file)).filter((track) => track.kind === kind);
    return read.length + unread.length;
  };
  return leftTracks({ video: await count("video"), audio: await count("audio") }).map((message) => ({
    code: "tracks_left",
    message,
  }));
}

/** Describes the tracks of a file as published that no player can read. */
export function checkEncrypted(path: string): FileWarning[] {
  return Object.entries(Object.groupBy(encryptedKinds(path), (kind) => kind)).map(([kind, { length }]) => {
    const [tracks, are] = length === 1 ? ["track", "is"] : ["tracks", "are"];
    return { code: "tracks_left", message: `${length} ${kind} ${tracks} of the file ${are} encrypted` };
  });
}

/** Describes a kind of tracks that the files have, as their headers say, and of which none could be chosen. */
export async function checkUnread(
  files: readonly LocalInput[],
  chosen: readonly InputTrack[],
  audioOnly: boolean,
): Promise<FileWarning[]> {
  const unread = (await Promise.all(files.map(unreadTracks))).flat();
  const kinds = audioOnly ? (["audio"] as const) : trackKinds;
  return kinds.flatMap((kind) => {
    const lost = unread.find((track) => track.kind === kind);
    if (lost === undefined || chosen.some(({ type }) => type === kind)) return [];
    const why = lost.isEncoded ? "its frames are compressed" : `its codec is ${printable(lost.codecId)}`;
    return [{ code: "track_missing", message: `the ${kind} of the source cannot be read: ${why}` }];
  });
}

/** Describes transparency of video, which an MP4 cannot have. */
export function checkAlpha(sources: readonly ChosenTracks[]): FileWarning[] {
  const message = "the transparency of the video is left out: an MP4 cannot have it";
  const hasAlpha = sources.some(({ tracks }) => tracks.some((track) => track.hasAlpha));
  return hasAlpha ? [{ code: "tracks_left", message }] : [];
}

/** Describes padding that not all players leave out: few players read where the edits of an MP4 end. */
export function checkPadding(details: readonly TrackDetails[]): FileWarning[] {
  const paddingMs = Math.max(0, ...details.map(({ paddingS }) => paddingS * 1000));
  const message = `the audio has ${paddingMs.toFixed(1)} ms of padding at its end, which some players play`;
  return paddingMs === 0 ? [] : [{ code: "end_padding", message }];
}

/** Audio that is off by less is hardly noticed (ITU-R BT.1359-1: 45 ms early). */
const longestShiftS = 0.045;

/** Returns how much earlier the video starts than the audio, seconds; 0 if there is only one of them. */
async function leadOf(tracks: readonly InputTrack[]): Promise<number> {
  const [video, audio] = ["video", "audio"].map((type) => tracks.find((one) => one.type === type));
  if (video === undefined || audio === undefined) return 0;
  return (await audio.getFirstTimestamp()) - (await startOf(video));
}

async function lastedS(track: InputTrack): Promise<number> {
  return (await track.computeDuration()) - (await startOf(track));
}

/** Returns when a track starts: video with its first key picture, as nothing can be shown before it. */
async function startOf(track: InputTrack): Promise<number> {
  const sink = track.isVideoTrack() ? new mediabunny.EncodedPacketSink(track) : undefined;
  const key = await sink?.getFirstKeyPacket({ verifyKeyPackets: true });
  return key?.timestamp ?? track.getFirstTimestamp();
}
