import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { createRequire } from "node:module";
import type * as Mediabunny from "mediabunny";
import type { Input, InputFormat, InputVideoTrack } from "mediabunny";
import { childrenOf, ids, voidHead } from "../../../remux/matroska/elements.ts";
import type { MediaInfo } from "../../engine.ts";
import { ServiceError, unlessUnreadable } from "../../../model/errors.ts";
import { checkSampleTables, findProtectedEntries } from "../../../remux/mp4/read/check-tables.ts";
import { childBoxes, type NumberSource, numbersInFile } from "../../../remux/mp4/read/number-source.ts";
import { openFile } from "../../../remux/open-file.ts";
import { findDamage } from "../../../remux/matroska/damage.ts";
import { type FileExt, type FileType, fileType } from "../../../parsers/media-type.ts";
import { unreadKind } from "./unread-kind.ts";
import { type MatroskaTrack, readHeader } from "../../../remux/matroska/tracks.ts";
import { chapterTrackIds } from "../../../remux/mp4/read/headers.ts";
import type { TrackKind } from "../../../remux/samples.ts";

/** mediabunny from one file, which its package has for `require`: its 70 modules take 50 ms and 12 MiB more. */
export const mediabunny: typeof Mediabunny = createRequire(import.meta.url)("mediabunny");

const { ADTS, FLAC, MATROSKA, MP3, MP4, MPEG_TS, OGG, QTFF, WAVE, WEBM } = mediabunny;
/** All single-file containers; an HLS playlist could name other files of this machine. */
const formats = [MP4, QTFF, MATROSKA, WEBM, WAVE, OGG, FLAC, MP3, ADTS, MPEG_TS];

export interface LocalInput extends Disposable {
  input: Input;
  fd: number;
  /** How much earlier than its time stamps the audio is presented, seconds. */
  codecDelayS: number;
  /** Video and audio that a Matroska file has, as its header says; empty for other containers. */
  headerTracks: readonly MatroskaTrack[];
  /** Stops all reads and closes the file; safe to call twice. */
  [Symbol.dispose](): void;
}

/**
 * Opens a file for mediabunny.
 *
 * @throws ServiceError `upstream_invalid` if it is an MP4 whose sample tables cannot be true: mediabunny
 * believes them; `drm_protected` if its media are encrypted.
 */
export function openLocalInput(path: string): LocalInput {
  const file = openSync(path, "r");
  let isClosed = false;
  const opened = (): number => {
    if (isClosed) throw new Error(`${path} is closed`);
    return file;
  };
  const source = new mediabunny.CustomSource({
    getSize: () => fstatSync(opened()).size,
    read: (start, end) => {
      const bytes = new Uint8Array(end - start);
      const length = readSync(opened(), bytes, 0, bytes.length, start);
      const read = bytes.subarray(0, length);
      for (const patch of patches) applyPatch(patch, read, start);
      return read;
    },
    prefetchProfile: "fileSystem",
  });
  using cleanup = new DisposableStack();
  cleanup.defer(() => {
    isClosed = true;
    closeSync(file);
  });
  const numbers = numbersInFile(file);
  checkSampleTables(numbers);
  // mediabunny finds more in a file whose header is damaged.
  const allTracks = unlessUnreadable(() => readHeader(numbers)?.tracks) ?? [];
  const headerTracks = allTracks.filter(({ kind }) => kind !== null);
  checkNotEncrypted(numbers, headerTracks);
  // In damage at the end, mediabunny looks for elements for ever.
  const damage = findDamage({ fd: file, size: fstatSync(file).size });
  const voids = damage.map((place): Patch => ({ at: place.start, bytes: voidHead(place) }));
  const patches = [...flagsToSet(headerTracks), ...voids];
  const { codecDelayNs = 0 } = headerTracks.find((track) => track.codecDelayNs > 0) ?? {};
  const codecDelayS = codecDelayNs < maxDelayNs ? codecDelayNs / 1e9 : 0;
  const input = new mediabunny.Input({ source, formats });
  cleanup.defer(() => input.dispose());
  const kept = cleanup.move();
  return { input, fd: file, codecDelayS, headerTracks, [Symbol.dispose]: () => kept.dispose() };
}

/** A longer delay is none: that of Opus is 80 ms at most. */
const maxDelayNs = 1e9;

/**
 * @throws ServiceError `drm_protected` if a track of an MP4 file is encrypted, or all video or all audio of a WebM or Matroska file, as its
 *   header says.
 */
function checkNotEncrypted(source: NumberSource, tracks: readonly MatroskaTrack[]): void {
  const kinds = [...Map.groupBy(tracks, ({ kind }) => kind).values()];
  const isProtected = kinds.some((own) => own.every((track) => isEncrypted(source, track)));
  const found = isProtected ? "ContentEncryption" : findProtectedEntries(source)[0]?.entry;
  if (found !== undefined) throw new ServiceError("drm_protected", `the media are encrypted ("${found}")`);
}

/** Returns the kinds of the video and audio tracks of a WebM, Matroska or MP4 file that are encrypted; none of one that is damaged. */
export function encryptedKinds(path: string): TrackKind[] {
  using file = openFile(path);
  const source = numbersInFile(file.fd);
  const tracks = unlessUnreadable(() => readHeader(source)?.tracks);
  if (tracks === undefined) return unlessUnreadable(() => findProtectedEntries(source).map(({ kind }) => kind)) ?? [];
  return tracks.flatMap((track) => (track.kind !== null && isEncrypted(source, track) ? [track.kind] : []));
}

/** Whether one of its ContentEncodings is an encryption (RFC 9559 §5.1.4.1.31); damaged ones say nothing. */
function isEncrypted(source: NumberSource, { entry }: MatroskaTrack): boolean {
  const encryptions = childrenOf(source, entry, ids.encodings)
    .flatMap((encodings) => childrenOf(source, encodings, ids.encoding))
    .flatMap((encoding) => childrenOf(source, encoding, ids.encryption));
  return unlessUnreadable(() => encryptions.some(() => true)) === true;
}

/** What is read of a file at a place instead of what it has there. */
interface Patch {
  at: number;
  bytes: Uint8Array;
}

function applyPatch({ at, bytes }: Patch, read: Uint8Array, start: number): void {
  const from = Math.max(0, start - at);
  const to = Math.min(bytes.length, start + read.length - at);
  if (from < to) read.set(bytes.subarray(from, to), at + from - start);
}

/**
 * Returns patches of the flags of disabled tracks that are read nevertheless, because no other of their kind is enabled: players
 * play them, mediabunny leaves them out.
 */
function flagsToSet(tracks: readonly MatroskaTrack[]): Patch[] {
  const enabled = new Set(tracks.filter(({ disabled }) => disabled === null).map(({ kind }) => kind));
  return tracks.flatMap(({ kind, disabled }) =>
    disabled === null || enabled.has(kind) ? [] : [{ at: disabled.end - 1, bytes: Uint8Array.of(1) }],
  );
}

/** Returns the numbers of tracks of an MP4 that have the titles and pictures of its chapters, which are no further video. */
export function chapterTracks({ fd }: Pick<LocalInput, "fd">): ReadonlySet<number> {
  const source = numbersInFile(fd);
  const [moov] = childBoxes(source, { body: 0, end: source.size }, "moov");
  return moov === undefined ? new Set() : chapterTrackIds(source, moov);
}

type UnreadTrack = Pick<MatroskaTrack, "kind" | "codecId" | "isEncoded">;

/** Returns the tracks of a Matroska file that mediabunny does not read, although they are not disabled; of Ogg, Theora, VP8, FLAC and Speex. */
export async function unreadTracks({ input, fd, headerTracks }: LocalInput): Promise<UnreadTrack[]> {
  const read = new Set((await input.getTracks()).map(({ id }) => id));
  const head = Buffer.alloc(512);
  readSync(fd, head, 0, head.length, 0);
  const unread = (kind: TrackKind, codecId: string | undefined): UnreadTrack[] =>
    codecId === undefined ? [] : [{ kind, codecId, isEncoded: false }];
  const video = unreadKind(head) === "ogv" ? (head.includes("OVP80") ? "VP8" : "Theora") : undefined;
  const ogg = [...unread("video", video), ...unread("audio", read.size === 0 ? oggAudioCodec(head) : undefined)];
  if (ogg.length > 0) return ogg;
  return headerTracks.filter(({ number, disabled }) => disabled === null && !read.has(number));
}

/** Returns the codec of the first stream with FLAC or Speex of an Ogg file, all streams of which begin at its start (RFC 3533 §6). */
function oggAudioCodec(head: Buffer): string | undefined {
  const isFirst = (at: number) => at >= 0 && ((head[at + 5] ?? 0) & 2) !== 0;
  for (let at = 0; isFirst(at); at = head.indexOf("OggS", at + 4)) {
    const start = head.toString("latin1", at + 27 + (head[at + 26] ?? 0)).slice(0, 5);
    if (start === "\x7fFLAC") return "FLAC";
    if (start === "Speex") return "Speex";
  }
  return undefined;
}

/**
 * Reads Matroska, WebM, Ogg, FLAC and MP3 with mediabunny.
 * @throws ServiceError `upstream_invalid` without a track; mediabunny's own errors.
 */
export async function readByLibrary(path: string): Promise<MediaInfo> {
  using file = openLocalInput(path);
  const { input } = file;
  const format = await input.getFormat();
  const tracks = await input.getTracks();
  const unread = await unreadTracks(file);
  if (tracks.length + unread.length === 0) {
    throw new ServiceError("upstream_invalid", "the downloaded file has no track");
  }
  const video = await input.getPrimaryVideoTrack();
  const duration = (await input.getDurationFromMetadata()) ?? (tracks.length > 0 ? await measureDuration(input) : null);
  return {
    ...kindOf(format, video !== null || unread.some(({ kind }) => kind === "video")),
    duration: duration !== null && Number.isFinite(duration) && duration > 0 ? duration : null,
    ...(video === null ? { width: null, height: null } : await sizeOf(video)),
  };
}

/** mediabunny's duration is the last time stamp: that of a stream which was recorded late is larger. */
async function measureDuration(input: Input): Promise<number> {
  const end = await input.computeDuration();
  return end - Math.max(0, await input.getFirstTimestamp());
}

async function sizeOf(video: InputVideoTrack) {
  return { width: await video.getDisplayWidth(), height: await video.getDisplayHeight() };
}

/** Extensions by mediabunny's name of the container. */
const kinds: ReadonlyMap<string, FileExt> = new Map([
  ["Matroska", "mkv"],
  ["WebM", "webm"],
  ["Ogg", "ogg"],
  ["MP3", "mp3"],
  ["FLAC", "flac"],
]);

function kindOf(format: InputFormat, hasVideo: boolean): FileType {
  const ext = kinds.get(format.name);
  return ext === undefined ? { ext: "bin", mime_type: format.mimeType } : fileType(ext, hasVideo);
}
