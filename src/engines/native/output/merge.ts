import { type FileHandle, open, rm } from "node:fs/promises";
import {
  Conversion,
  type Input,
  type InputTrack,
  MkvOutputFormat,
  Mp4OutputFormat,
  Output,
  StreamTarget,
  type StreamTargetChunk,
  type Target,
  WebMOutputFormat,
} from "mediabunny";
import type { FileWarning } from "../../../model/file-warnings.ts";
import { diskError } from "../../../files/disk-error.ts";
import { ServiceError } from "../../../model/errors.ts";
import { describeMedia } from "../inspect/describe.ts";
import { type LocalInput, openLocalInput } from "../inspect/local-input.ts";
import { writeAll } from "../parts/disk-writes.ts";
import { noAdditions } from "../../../remux/additions.ts";
import type { CopyTarget } from "../../../remux/matroska/copy.ts";
import { copyElements, copyWritten, detailsOf, matroskaSources } from "./copy-matroska.ts";
import type { PendingAdditions } from "./remux.ts";
import { leftTracks } from "./file-warnings.ts";
import { usualGapS } from "../sources/fetch-stats.ts";

export interface MergeOptions {
  main: string;
  /** File with the audio, used instead of that of `main`, unless `isAudioOptional`. */
  audio: string | null;
  isAudioOptional: boolean;
  /** Files with further audio tracks. */
  otherAudio: readonly string[];
  /** BCP 47, of the audio tracks in their order, as their formats say; `null`: unknown. */
  languages: readonly (string | null)[];
  audioOnly: boolean;
  /** Path of the result. */
  target: string;
  isMp4Wanted: boolean;
  /** For WebM and Matroska. */
  additions: PendingAdditions;
  signal: AbortSignal;
}

/**
 * Merges the tracks of complete files into one without re-encoding: as WebM if it allows all codecs, as Matroska if it is
 * audio whose end is padded, which no MP4 can say to all players, else as fragmented MP4. Returns whether it is an MP4, which time of
 * these files is its start, what it lacks of what they say of the tracks, and what differs from them.
 *
 * @throws ServiceError `format_unavailable` if there is no track, or neither container allows one of them.
 */
export async function mergeFiles(options: MergeOptions) {
  try {
    using opened = new DisposableStack();
    const files = [options.main, options.audio, ...options.otherAudio]
      .filter((path) => path !== null)
      .map((path) => opened.use(openLocalInput(path)));
    const inputs = files.map(({ input }) => input);
    const chosen = await chooseTracks(inputs, options);
    const codecs = await Promise.all(chosen.map((track) => track.getCodec()));
    const { signal, target, isMp4Wanted } = options;
    const isWebm = !isMp4Wanted && codecs.every((codec) => webmCodecs.has(codec));
    const originS = Math.min(...(await Promise.all(chosen.map((track) => track.getFirstTimestamp()))));
    const additions = await options.additions.get({ originS, offsetOf: () => 0 });
    await using file = await open(target, "w");
    const sources = matroskaSources(files, chosen);
    const hasSeveral = !isMp4Wanted && options.otherAudio.length > 0;
    const languages = hasSeveral ? options.languages : [];
    const copy = { isWebm, fd: file.fd, additions, languages, signal };
    const isCopied = !isMp4Wanted && (await copyElements(sources, chosen, copy));
    // The demuxer of MP4 reads one audio track.
    const isMatroska = isWebm || hasSeveral;
    if (!isCopied && (hasSeveral || (isWebm && additions !== noAdditions))) {
      const docType = isWebm ? "webm" : "matroska";
      await writeMatroska(files, chosen, file, { target, additions, docType, languages, signal });
    } else if (!isCopied) {
      const format = isWebm ? new WebMOutputFormat() : new Mp4OutputFormat({ fastStart: "fragmented" });
      await write(files, chosen, new Output({ format, target: createFileTarget(file) }), signal);
    }
    const warnings = [...(await checkMerged(chosen, options.target)), ...(await checkLeft(chosen))];
    return { isMp4: !isMatroska && !isCopied, originS, details: sources.flatMap(detailsOf), warnings };
  } catch (error) {
    options.signal.throwIfAborted();
    const cause = diskError(`write ${options.target}`, error);
    if (cause instanceof ServiceError) throw cause;
    const named = await describeMedia([options.main, options.audio]);
    const message = `${named} cannot be put into MP4 or WebM`;
    throw new ServiceError("format_unavailable", message, { cause });
  }
}

/** mediabunny writes the media; what is added to them needs a copy. */
async function writeMatroska(
  files: readonly LocalInput[],
  chosen: readonly InputTrack[],
  file: FileHandle,
  { target, signal, ...copy }: Pick<MergeOptions, "target" | "signal"> & Omit<CopyTarget, "fd">,
): Promise<void> {
  const path = `${target}.plain`;
  const format = copy.docType === "webm" ? new WebMOutputFormat() : new MkvOutputFormat();
  try {
    {
      await using plain = await open(path, "w");
      await write(files, chosen, new Output({ format, target: createFileTarget(plain) }), signal);
    }
    await copyWritten(path, { ...copy, fd: file.fd }, signal);
  } finally {
    await rm(path, { force: true });
  }
}

/** One video track at most, and of each file one audio track. */
async function chooseTracks(
  [main, ...separate]: readonly Input[],
  { audioOnly, isAudioOptional, audio: audioPath }: MergeOptions,
): Promise<InputTrack[]> {
  const video = audioOnly ? null : await main?.getPrimaryVideoTrack();
  const [first, others] = audioPath === null ? [undefined, separate] : [separate[0], separate.slice(1)];
  const own = first === undefined || isAudioOptional ? await main?.getPrimaryAudioTrack() : null;
  const audio = own ?? (await first?.getPrimaryAudioTrack());
  const further = await Promise.all(others.map((input) => input.getPrimaryAudioTrack()));
  const tracks = [video, audio, ...further].filter((track) => track !== null && track !== undefined);
  if (tracks.length > 0) return tracks;
  const missing = audioOnly ? "no audio" : "neither video nor audio";
  throw new ServiceError("format_unavailable", `the downloaded media has ${missing}`);
}

const webmCodecs: ReadonlySet<string | null> = new Set(["vp8", "vp9", "av1", "opus", "vorbis"]);

/**
 * Lets mediabunny write into `file`; the caller closes it. mediabunny's FilePathTarget leaves the file open
 * after a failure, and treats a short write as a complete one.
 */
function createFileTarget(file: FileHandle): Target {
  const writable = new WritableStream<StreamTargetChunk>({
    write: ({ data, position }) => writeAll(file, [data], position),
  });
  return new StreamTarget(writable, { chunked: true });
}

async function write(
  files: readonly LocalInput[],
  chosen: readonly InputTrack[],
  output: Output,
  signal: AbortSignal,
): Promise<void> {
  const trims = await trimStarts(files, chosen, output.format instanceof WebMOutputFormat);
  const conversions = await Promise.all(
    files.map(({ input }, index) => {
      const choose = async (track: InputTrack) => ({ discard: !chosen.includes(track) });
      return Conversion.init({
        input,
        output,
        video: choose,
        audio: choose,
        trim: { start: trims[index] ?? 0 },
        copy: { mode: "forced", shiftTolerance: Number.POSITIVE_INFINITY },
        showWarnings: false,
        composable: true,
      });
    }),
  );
  const accepted = conversions.flatMap(({ utilizedTracks }) => utilizedTracks);
  if (accepted.length < chosen.length) throw new Error("a track was refused by the output format");
  const cancel = () => {
    for (const conversion of conversions) void conversion.cancel();
  };
  signal.addEventListener("abort", cancel, { once: true });
  try {
    signal.throwIfAborted();
    await output.start();
    await Promise.all(conversions.map((conversion) => conversion.execute()));
    await output.finalize();
  } catch (error) {
    // Stops the other conversion.
    if (!signal.aborted) cancel();
    // Closing a failed target fails too; the first error counts.
    await output.cancel().catch(() => undefined);
    throw error;
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

/**
 * Returns the time stamp in each file that becomes 0: one for all, each would be moved to its own start
 * otherwise. In WebM the delay of a codec gets lost: what has none of it is moved by as much.
 */
async function trimStarts(
  files: readonly LocalInput[],
  chosen: readonly InputTrack[],
  isWebm: boolean,
): Promise<number[]> {
  const starts = await Promise.all(chosen.map((track) => track.getFirstTimestamp()));
  const audio = chosen.find((track) => track.isAudioTrack())?.input;
  const delayS = isWebm ? (files.find(({ input }) => input === audio)?.codecDelayS ?? 0) : 0;
  const start = Math.min(...starts);
  return files.map(({ input }) => (input === audio ? start : start - delayS));
}

/**
 * Compares the tracks of a merged file with those it was merged from: by their ends, which the containers
 * list, so that no file is read a second time.
 */
async function checkMerged(sources: readonly InputTrack[], target: string): Promise<FileWarning[]> {
  using merged = openLocalInput(target);
  const tracks = await merged.input.getTracks();
  const found = await Promise.all(
    sources.map(async (source): Promise<FileWarning[]> => {
      const { type } = source;
      const number = sources.filter((each) => each.type === type).indexOf(source);
      const track = tracks.filter((candidate) => candidate.type === type)[number];
      if (track === undefined) {
        const message = `the source has ${type}, the file has none`;
        return [{ code: "track_missing", message }];
      }
      const [sourceS, fileS] = [await lastedS(source), await lastedS(track)];
      if (Math.abs(sourceS - fileS) <= usualGapS) return [];
      const message = `the ${type} lasts ${fileS.toFixed(1)} s, that of its source ${sourceS.toFixed(1)} s`;
      return [{ code: "duration_differs", message }];
    }),
  );
  const [sourceLead, lead] = [await leadOf(sources), await leadOf(tracks)];
  if (Math.abs(sourceLead - lead) > longestShiftS) {
    const message = `the tracks start ${lead.toFixed(2)} s apart, those of the source ${sourceLead.toFixed(2)} s`;
    found.push([{ code: "times_changed", message }]);
  }
  return found.flat();
}

/** Tells of the audio tracks that are in the file of the chosen one. */
async function checkLeft(chosen: readonly InputTrack[]): Promise<FileWarning[]> {
  const audio = chosen.find((track) => track.isAudioTrack());
  const all = (await audio?.input.getAudioTracks()) ?? [];
  return leftTracks(all.length - 1).map((message) => ({ code: "tracks_left", message }));
}

/** Audio that is off by less is hardly noticed (ITU-R BT.1359-1: 45 ms early). */
const longestShiftS = 0.045;

/** Returns by how much the video starts before the audio, seconds; 0 if there is only one of them. */
async function leadOf(tracks: readonly InputTrack[]): Promise<number> {
  const [video, audio] = ["video", "audio"].map((type) => tracks.find((one) => one.type === type));
  if (video === undefined || audio === undefined) return 0;
  return (await audio.getFirstTimestamp()) - (await video.getFirstTimestamp());
}

async function lastedS(track: InputTrack): Promise<number> {
  return (await track.computeDuration()) - (await track.getFirstTimestamp());
}
