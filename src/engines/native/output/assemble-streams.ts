import { createReadStream, createWriteStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import type { FileWarning } from "../../../model/file-warnings.ts";
import { ServiceError } from "../../../model/errors.ts";
import type { DownloadJob, MediaInfo } from "../../engine.ts";
import type { SourceFetcher } from "../sources/fetch-sources.ts";
import type { AudioChoice } from "../../../remux/audio-choice.ts";
import { countSegments } from "../../../remux/matroska/damage.ts";
import { countOggLinks } from "../../../remux/audio-files/ogg-pages.ts";
import { SkipError } from "../../../remux/timelines.ts";
import { hasSelection } from "../sources/select-segments.ts";
import { publishedDamage } from "../damage/published-damage.ts";
import { checkPadding } from "./check-merged.ts";
import { lostSamples } from "./count-packets.ts";
import { type FileStats, missingTracks } from "./file-warnings.ts";
import { type MergedFile, mergeFiles } from "./merge.ts";
import { listedKinds, type Plan, type Source, sourceDuration, statedKinds } from "../sources/plan.ts";
import { WebmSegments } from "./webm-segments.ts";
import { isRemuxable } from "./demux-session.ts";
import { type PendingAdditions, remux, type RemuxedStream, type RemuxOptions } from "./remux.ts";
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
 * Makes one file in `folder` of the media of the plan's sources: remuxes what can be while it arrives, and else merges complete files.
 *
 * @param mayGrow Files may be read while they are fetched.
 * @throws GrowthError if one cannot; ServiceError of `fetcher`, `inspect`, `remux` and `mergeFiles`
 */
export async function assembleStreams(plan: Plan, options: AssembleOptions, mayGrow: boolean): Promise<Assembled> {
  const { fetcher, journal, ranges, audioOnly } = options;
  const [main, ...audio] = plan.sources;
  const fallback = audio.find(({ role }) => role === "fallback");
  const open = async (source: Source) => ({ ...(await fetcher.openStream(source, mayGrow)), role: source.role });
  const streams = await Promise.all([open(main), ...audio.filter((source) => source !== fallback).map(open)]);
  if (!streams.every(isRemuxable)) {
    if (fallback !== undefined) streams.push(await open(fallback));
    for (const { complete } of streams) await complete;
    return mergeStreams(plan, options, streams);
  }
  const openFallback = fallback === undefined ? null : () => open(fallback);
  const stream = ranges.length > 0 ? null : { journal, kinds: statedKinds(plan, audioOnly) };
  const expectedS = sourceDuration(main);
  const written = await remux({ ...commonOf(options), streams, openFallback, expectedS, stream });
  // Streams of other containers count what is damaged while they are read.
  const files = streams.flatMap(({ container, path }) => (container === "mp4" && path !== null ? [path] : []));
  const padding = checkPadding(streams.flatMap(({ details = [] }) => details));
  const lost = streams.flatMap((each) => lostSamples(each, written.tracks));
  return {
    path: resultPath(options),
    written,
    warnings: [...toWarnings(files.flatMap((file) => publishedDamage(file))), ...lost, ...padding],
  };
}

const resultPath = ({ folder }: AssembleOptions): string => join(folder, "result");

function commonOf(options: AssembleOptions) {
  const { audioOnly, audioChoice, maxBytes, onWritten, additions, signal } = options;
  return { audioOnly, audioChoice, target: resultPath(options), maxBytes, onWritten, additions, signal };
}

/** Merges the complete files of streams, as they are or put together of their segments. */
async function mergeStreams(
  plan: Plan,
  options: AssembleOptions,
  streams: readonly RemuxedStream[],
): Promise<Assembled> {
  const { folder, audioOnly, withTimeLimit, additions, audioChoice, signal } = options;
  const joined: WebmSegments[] = [];
  const damage: string[] = [];
  const save = (stream: SourceStream) => {
    if (stream.path !== null) damage.push(...publishedDamage(stream.path), ...laterParts(stream.path));
    return saveStream(stream, joined, folder, signal);
  };
  const files: MergedFile[] = [];
  // In the order of the plan, of which a fallback is opened last.
  for (const { name } of plan.sources) {
    const stream = streams.find((each) => each.name === name)!;
    files.push({ role: stream.role, label: stream.label, path: await save(stream) });
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
  const written = await remux({ ...commonOf(options), ...single, additions: moved });
  warnings.push(...lostSamples(stream, written.tracks));
  return { path: resultPath(options), written, warnings, joined, originS };
}

const hasMissing = (warnings: readonly FileWarning[]) => warnings.some(({ code }) => code === "track_missing");

const toWarnings = (damage: readonly string[]): FileWarning[] =>
  damage.map((message) => ({ code: "frames_missing", message }));

/** Describes what of a Matroska or Ogg file is not read, as its times begin again: what follows its first Segment or streams. */
function laterParts(path: string): string[] {
  const counts = { "Segments with media": countSegments(path), "streams one after the other": countOggLinks(path) };
  return Object.entries(counts)
    .filter(([, count]) => count > 1)
    .map(([parts, count]) => `the file has ${count} ${parts}, of which only the first is read`);
}

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
