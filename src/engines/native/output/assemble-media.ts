import { createReadStream, createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import type { FileWarning } from "../../../model/file-warnings.ts";
import { ServiceError } from "../../../model/errors.ts";
import type { DownloadJob, MediaInfo } from "../../engine.ts";
import type { SourceFetcher } from "../sources/fetch-sources.ts";
import type { AudioChoice } from "../../../remux/audio-choice.ts";
import { isIndexedMp4 } from "../../../remux/mp4/read/file-boxes.ts";
import { hidesVideo } from "../inspect/unread-kind.ts";
import { embedInMp4 } from "../../../remux/mp4/embed.ts";
import { embedInAudio } from "../../../remux/audio-files/embed.ts";
import { countSegments } from "../../../remux/matroska/damage.ts";
import { countOggLinks } from "../../../remux/audio-files/ogg-pages.ts";
import { sniffFile } from "../../../remux/sniff.ts";
import { SkipError } from "../../../remux/timelines.ts";
import { hasSelection } from "../sources/select-segments.ts";
import { publishedDamage } from "../damage/published-damage.ts";
import { FileAnnouncement } from "./announce-file.ts";
import { addToMatroska } from "./copy-matroska.ts";
import { checkEncrypted, checkPadding } from "./check-merged.ts";
import { hasAllPackets, lostSamples } from "./count-packets.ts";
import { type FileStats, missingTracks } from "./file-warnings.ts";
import { chooseInFile, type MergedFile, mergeFiles } from "./merge.ts";
import { type FileSource, listedKinds, type Plan, type Source, sourceDuration, statedKinds } from "../sources/plan.ts";
import { WebmSegments } from "./webm-segments.ts";
import { isRemuxable } from "./demux-session.ts";
import { type PendingAdditions, remux, type RemuxOptions } from "./remux.ts";
import { positionFrom } from "../texts/place-cues.ts";
import { checkAbsent, openFileStream, partTiming, type SourceStream } from "../sources/source-stream.ts";

/** Work on complete files, whose time is limited by their size. */
export interface FileWork {
  kind: "read" | "merge";
  /** Size of the files together. */
  bytes: number;
}

export interface AssembleOptions
  extends
    Pick<DownloadJob, "audioOnly" | "embed" | "folder" | "isAudioFile" | "maxBytes" | "ranges">,
    Pick<RemuxOptions, "onWritten" | "additions" | "signal"> {
  fetcher: SourceFetcher;
  /** Reads back what a file contains. */
  inspect: (path: string) => Promise<MediaInfo>;
  /** Chooses among the audio tracks of the media that have several; asked again if the media are read again. */
  audioChoice: AudioChoice;
  /** Does work on the files at `paths` under a time limit that depends on their size. */
  withTimeLimit: <T>(kind: FileWork["kind"], paths: string[], work: () => Promise<T>) => Promise<T>;
  /** Gets what can be sent while it is fetched. */
  journal: StreamJournal;
}

export interface Assembled extends Pick<FileStats, "path" | "written" | "joined" | "cut"> {
  /** Path of the file that it has the packets of; absent: it is that file. */
  copiedFrom?: string;
  /** How long that file presents its media, seconds: whole packets of a cut may last a little longer; absent: as long as the file says. */
  presentedS?: number | null;
  /** What differs from the files that it was merged from. */
  warnings: readonly FileWarning[];
  /** Where the time of `written` starts on that of the files of the sources, seconds; absent: 0. */
  originS?: number;
}

/**
 * Fetches the plan's sources and makes one file of them in `folder`. MPEG-TS, fragmented
 * MP4 and packed audio are remuxed while they arrive; tracks of other containers are merged afterwards.
 *
 * @throws ServiceError of `fetcher`, `inspect`, `remux` and `mergeFiles`
 */
export async function assembleMedia(plan: Plan, options: AssembleOptions): Promise<Assembled> {
  const { fetcher, folder, audioOnly, maxBytes, withTimeLimit, onWritten, additions, audioChoice, signal } = options;
  // An earlier run may have made them of other sources.
  const wholes = ["main", "audio", ...plan.sources.map(({ name }) => name)].map((name) => `${name}.whole`);
  const names = ["result", "merged", "embedded", "audio-file", "cut", ...wholes];
  for (const name of names) await rm(join(folder, name), { force: true });
  const published = await keepPublished(plan, options);
  if (published !== null) return published;
  const target = join(folder, "result");
  const [main, ...audio] = plan.sources;
  const fallback = audio.find(({ role }) => role === "fallback");
  const open = async (source: Source) => ({ ...(await fetcher.openStream(source)), role: source.role });
  const openFallback = fallback === undefined ? null : () => open(fallback);
  const streams = await Promise.all([open(main), ...audio.filter((source) => source !== fallback).map(open)]);
  const common = { audioOnly, audioChoice, target, maxBytes, onWritten, additions, signal };
  if (streams.every(isRemuxable)) {
    const expectedS = sourceDuration(main);
    const stream = options.ranges.length > 0 ? null : { journal: options.journal, kinds: statedKinds(plan, audioOnly) };
    const written = await remux({ ...common, streams, openFallback, expectedS, stream });
    // Streams of other containers count what is damaged while they are read.
    const files = streams.flatMap(({ container, path }) => (container === "mp4" && path !== null ? [path] : []));
    const padding = checkPadding(streams.flatMap(({ details = [] }) => details));
    const lost = streams.flatMap((each) => lostSamples(each, written.tracks));
    return {
      path: target,
      written,
      warnings: [...toWarnings(files.flatMap((file) => publishedDamage(file))), ...lost, ...padding],
    };
  }
  const joined: WebmSegments[] = [];
  const damage: string[] = [];
  const save = (stream: SourceStream) => {
    if (stream.path !== null) damage.push(...publishedDamage(stream.path), ...laterParts(stream.path));
    return saveStream(stream, joined, folder, signal);
  };
  const files: MergedFile[] = [];
  for (const source of plan.sources) {
    const stream = streams.find(({ name }) => name === source.name) ?? (await open(source));
    files.push({ role: source.role, label: stream.label, path: await save(stream) });
  }
  const merged = join(folder, "merged");
  const isMp4Wanted = options.ranges.length > 0;
  await additions.ready();
  const paths = files.map(({ path }) => path);
  const { isMp4, originS, details, tracks, ...merge } = await withTimeLimit("merge", paths, () =>
    mergeFiles({ files, target: merged, isMp4Wanted, audioOnly, audioChoice, additions, signal }),
  );
  const warnings = [...merge.warnings, ...toWarnings(damage)];
  // Remuxing finds that by itself.
  const lost = isMp4 || hasMissing(merge.warnings) ? [] : missingTracks(tracks, listedKinds(plan, audioOnly));
  warnings.push(...lost.map((message): FileWarning => ({ code: "track_missing", message })));
  if (!isMp4) return { path: merged, written: null, warnings, joined };
  // Remuxing puts the index of an MP4 in front.
  const stream = openFileStream("main", merged, undefined, hasSelection(plan) ? partTiming : undefined);
  const moved: PendingAdditions = {
    ...additions,
    get: (media) => additions.get(positionFrom(originS + media.originS)),
  };
  const single = { streams: [{ ...stream, details, role: "main" }], openFallback: null, expectedS: null } as const;
  const written = await remux({ ...common, ...single, additions: moved });
  warnings.push(...lostSamples(stream, written.tracks));
  return { path: target, written, warnings, joined, originS };
}

const hasMissing = (warnings: readonly FileWarning[]) => warnings.some(({ code }) => code === "track_missing");

const toWarnings = (damage: readonly string[]): FileWarning[] =>
  damage.map((message) => ({ code: "frames_missing", message }));

/** Keeps the file of a plan as it is, but for additions; `null` if it must become another one. */
async function keepPublished({ isPassthrough, sources }: Plan, options: AssembleOptions): Promise<Assembled | null> {
  const [main] = sources;
  if (!isPassthrough || main.kind !== "file" || main.part !== null) return null;
  const { fetcher, ranges, audioOnly, audioChoice, inspect, withTimeLimit } = options;
  const { path } = await fetcher.fetchFile(main, createAnnouncement(main, options));
  if (ranges.length > 0 && !isIndexedMp4(path)) return null;
  if (audioOnly && !isAudio(await inspect(path), main)) return null;
  // It keeps all its tracks, in whatever languages.
  if (audioChoice.isAsked) await withTimeLimit("read", [path], () => chooseInFile(path, audioChoice));
  const isOtherFirst = audioChoice.isOtherFirst && ranges.length === 0;
  const warnings = [...(isOtherFirst ? [otherFirst] : []), ...checkEncrypted(path)];
  if (options.embed !== "all" || ranges.length > 0) return { path, written: null, warnings };
  const embedded = await embed(path, options);
  if (embedded === null) warnings.push(notEmbedded);
  return { path: embedded ?? path, copiedFrom: path, written: null, warnings };
}

/** Returns what announces the file if it is sent as it comes; undefined if only a part of it becomes the result. */
function createAnnouncement(source: FileSource, options: AssembleOptions): FileAnnouncement | undefined {
  const { ranges, audioOnly, journal } = options;
  if (ranges.length > 0) return undefined;
  return new FileAnnouncement(journal, (type) => !audioOnly || isAudio(type, source));
}

const otherFirst: FileWarning = {
  code: "tracks_left",
  message:
    "the file is as published, and plays another audio track first than was asked for; ranges from 0 to the end make a file of those that were",
};

const notEmbedded: FileWarning = {
  code: "not_embedded",
  message: "the file is as published, without tags and chapters: its container or its index cannot have them",
};

/** Returns the path of a copy with additions; `null` if its container cannot have them. */
async function embed(
  path: string,
  { folder, additions, inspect, withTimeLimit, signal }: AssembleOptions,
): Promise<string | null> {
  await additions.ready();
  const added = await additions.get({ ...positionFrom(0), isPublished: true });
  const target = join(folder, "embedded");
  const container = sniffFile(path);
  const durationS = container === "webm" ? null : (await inspect(path)).duration;
  const write = async () => {
    if (container === "mp4") return embedInMp4(path, target, added, { durationS, signal });
    if (container === "webm") return addToMatroska(path, target, added, signal);
    return embedInAudio(path, target, added, { durationS: durationS ?? Infinity, signal });
  };
  const isEmbedded = await withTimeLimit("merge", [path], async () => (await write()) && hasAllPackets(target, path));
  return isEmbedded ? target : null;
}

/** Describes what of a Matroska or Ogg file is not read, as its times begin again: what follows its first Segment or streams. */
function laterParts(path: string): string[] {
  const counts = { "Segments with media": countSegments(path), "streams one after the other": countOggLinks(path) };
  return Object.entries(counts)
    .filter(([, count]) => count > 1)
    .map(([parts, count]) => `the file has ${count} ${parts}, of which only the first is read`);
}

const isAudio = ({ ext, mime_type }: Pick<MediaInfo, "ext" | "mime_type">, { format }: FileSource): boolean =>
  mime_type.startsWith("audio/") || (format.vcodec === "none" && hidesVideo(ext));

/** Returns the path of the stream's file, and adds to `joined` what its segments have; writes its init section and segments to one if needed. */
async function saveStream(
  { name, container, path: sourcePath, chunks }: SourceStream,
  joined: WebmSegments[],
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  if (sourcePath !== null) return sourcePath;
  if (container === null) {
    throw new ServiceError("upstream_invalid", `the ${name} segments have no supported container`);
  }
  const path = join(folder, `${name}.whole`);
  const segments = new WebmSegments(name);
  let hasSkipped = false;
  if (container === "webm") joined.push(segments);
  async function* bytes() {
    let timeline: number | undefined;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
      if ("error" in next.value) {
        const { computed, durationS } = next.value;
        checkAbsent(next.value, computed.periodEndS - durationS);
        continue;
      }
      const { media, timing } = next.value;
      if (!(media instanceof Uint8Array) && media.within !== undefined) throw new SkipError("the file has holes");
      if (timing.timeline !== (timeline ??= timing.timeline)) {
        const rule = `a ${container} stream of several Periods or discontinuities cannot be joined`;
        throw new ServiceError("format_unavailable", rule);
      }
      hasSkipped ||= timing.skippedS !== undefined;
      if (hasSkipped && (container !== "webm" || segments.hasIndex || !(media instanceof Uint8Array))) {
        throw new SkipError("the segments are joined as they are");
      }
      // Copied: the bytes are valid only until the next chunk is requested.
      if (media instanceof Uint8Array && container === "webm") segments.add(media, timing);
      if (media instanceof Uint8Array) yield Uint8Array.from(media);
      else yield* createReadStream(media.path);
    }
  }
  await pipeline(bytes, createWriteStream(path), { signal });
  return path;
}
