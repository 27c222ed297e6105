import { join } from "node:path";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import { ServiceError } from "../../../model/errors.ts";
import type { FileWarning } from "../../../model/file-warnings.ts";
import type { DownloadJob, MediaInfo } from "../../engine.ts";
import type { SourceFetcher } from "../sources/fetch-sources.ts";
import type { AudioChoice } from "../../../remux/audio-choice.ts";
import { countSegments } from "../../../remux/matroska/damage.ts";
import { countOggLinks } from "../../../remux/audio-files/ogg-pages.ts";
import { hasSelection } from "../sources/select-segments.ts";
import { publishedDamage } from "../damage/published-damage.ts";
import { GrowthError } from "../partial/growing-file.ts";
import { checkPadding } from "./check-merged.ts";
import { lostSamples } from "./count-packets.ts";
import { type FileStats, missingTracks } from "./file-warnings.ts";
import { mergeFiles } from "./merge.ts";
import { isLiveSource, listedKinds, type Plan, type Source, sourceDuration, statedKinds } from "../sources/plan.ts";
import { copySaved, openSaved, type SavedStream } from "./saved-stream.ts";
import { isRemuxable } from "./demux-session.ts";
import { type PendingAdditions, remux, type RemuxedStream, type RemuxOptions } from "./remux.ts";
import { positionFrom } from "../texts/place-cues.ts";
import { openFileStream, partTiming } from "../sources/source-stream.ts";

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
    // The segments of a live stream stay there: what cannot be copied while they come is merged afterwards.
    const mayCopy = mayGrow || (ranges.length === 0 && plan.sources.some(isLiveSource));
    return mergeStreams(plan, options, streams, mayCopy && fallback === undefined);
  }
  const openFallback = fallback === undefined ? null : () => open(fallback);
  const stream = ranges.length > 0 ? null : { journal, kinds: statedKinds(plan, audioOnly) };
  const expectedS = sourceDuration(main);
  const onReached = plan.sources.some(isLiveSource) ? recordingEnd(options) : undefined;
  const written = await remux({ ...commonOf(options), streams, openFallback, expectedS, stream, onReached });
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

/** How much earlier the media of one track may end in a segment than those of another, seconds. */
const unevenS = 2;

/** Returns what ends the recording of a live stream after the last of the ranges; `undefined`: that is its end. */
function recordingEnd({ ranges, fetcher }: AssembleOptions): ((seconds: number) => void) | undefined {
  const endS = ranges.at(-1)?.endS ?? Infinity;
  if (endS === Infinity) return undefined;
  return (seconds) => {
    if (seconds > endS + unevenS) fetcher.endRecording();
  };
}

const resultPath = ({ folder }: AssembleOptions): string => join(folder, "result");

function commonOf(options: AssembleOptions) {
  const { audioOnly, audioChoice, maxBytes, onWritten, additions, signal } = options;
  return { audioOnly, audioChoice, target: resultPath(options), maxBytes, onWritten, additions, signal };
}

/**
 * Merges the files of streams, as they are or put together of their segments, once they are complete.
 *
 * @param mayCopy WebM may be copied while it is fetched.
 */
async function mergeStreams(
  plan: Plan,
  options: AssembleOptions,
  streams: readonly RemuxedStream[],
  mayCopy: boolean,
): Promise<Assembled> {
  const { folder, audioOnly, withTimeLimit, additions, audioChoice, signal } = options;
  requireOneOffset(plan);
  await using opened = new AsyncDisposableStack();
  const files: SavedStream[] = [];
  // In the order of the plan, of which a fallback is opened last.
  for (const { name } of plan.sources) {
    const stream = streams.find((each) => each.name === name)!;
    files.push(await openSaved(stream, folder, opened));
  }
  const target = join(folder, "merged");
  const isCopied = mayCopy && canCopy(additions) && files.every(({ container }) => container === "webm");
  const { journal } = options;
  using copy = isCopied ? await copySaved(files, { audioOnly, additions, target, journal, signal }) : null;
  // Once it is complete, a published file may be refused, or kept as it is.
  if (isCopied && copy === null && plan.isPassthrough) throw new GrowthError(streams[0]!.complete ?? Promise.resolve());
  // Side by side: segments of a live stream are only there for a while, and few are fetched ahead.
  await Promise.all(files.map((file) => file.complete()));
  const damage: string[] = [];
  for (const file of files) {
    // A published file that is not kept as it is has not been looked at.
    if (copy !== null && plan.isPassthrough) await options.inspect(file.path);
    if (file.segments === null) damage.push(...publishedDamage(file.path), ...laterParts(file.path));
  }
  const joined = files.flatMap(({ container, segments }) => (container === "webm" ? (segments ?? []) : []));
  const isMp4Wanted = options.ranges.length > 0;
  await additions.ready();
  const paths = files.map(({ path }) => path);
  const { isMp4, originS, details, tracks, ...merge } = await withTimeLimit("merge", paths, () =>
    mergeFiles({ files, target, isMp4Wanted, audioOnly, audioChoice, additions, copy, signal }),
  );
  if (copy !== null) journal.end();
  const warnings = [...merge.warnings, ...toWarnings(damage)];
  // Remuxing finds that by itself.
  const lost = isMp4 || hasMissing(merge.warnings) ? [] : missingTracks(tracks, listedKinds(plan, audioOnly));
  warnings.push(...lost.map((message): FileWarning => ({ code: "track_missing", message })));
  if (!isMp4) return { path: target, written: null, warnings, joined };
  // Remuxing puts the index of an MP4 in front.
  const stream = openFileStream("main", target, undefined, hasSelection(plan) ? partTiming : undefined);
  const moved: PendingAdditions = {
    ...additions,
    get: (media) => additions.get(positionFrom(originS + media.originS)),
  };
  const single = { streams: [{ ...stream, details, role: "main" }], openFallback: null, expectedS: null } as const;
  const written = await remux({ ...commonOf(options), ...single, additions: moved });
  warnings.push(...lostSamples(stream, written.tracks));
  return { path: resultPath(options), written, warnings, joined, originS };
}

/** Players do not notice that sound is so much apart from pictures, seconds. */
const mostOffsetApartS = 0.02;

/**
 * Checks that the times of files that are put together as they are count from the same (`presentationTimeOffset`, ISO/IEC 23009-1 §5.3.9.2).
 *
 * @throws ServiceError `format_unavailable`
 */
function requireOneOffset({ sources }: Plan): void {
  const offsets = sources.flatMap((source) => (source.kind === "file" ? [] : (source.list.segments[0]?.offsetS ?? [])));
  const apartS = Math.max(...offsets) - Math.min(...offsets);
  if (offsets.length === 0 || apartS <= mostOffsetApartS) return;
  const rule = `their presentationTimeOffset moves one by ${apartS.toFixed(3)} s against another, which is done in MP4 only`;
  throw new ServiceError("format_unavailable", `streams with times of their own cannot be joined: ${rule}`);
}

/** Whether media of WebM can be copied before it is known what is added to them. */
export const canCopy = (additions: PendingAdditions): boolean => additions.textTracks() === 0;

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
