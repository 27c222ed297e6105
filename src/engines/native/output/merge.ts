import { addAbortListener } from "node:events";
import { type FileHandle, open, rm } from "node:fs/promises";
import type { Conversion, Input, InputTrack, Output, StreamTargetChunk, Target } from "mediabunny";
import { diskError } from "../../../files/disk-error.ts";
import { ServiceError } from "../../../model/errors.ts";
import type { FileWarning } from "../../../model/file-warnings.ts";
import { describeFiles } from "../inspect/describe.ts";
import { type LocalInput, mediabunny, openLocalInput } from "../inspect/local-input.ts";
import { writeAll } from "../parts/disk-writes.ts";
import type { GrowingCopy } from "../partial/growing-matroska.ts";
import type { AudioChoice } from "../../../remux/audio-choice.ts";
import { chooseMp4Audio } from "../../../remux/mp4/read/summary.ts";
import { chooseMpegTsAudio } from "../../../remux/mpeg-ts/summary.ts";
import type { TrackKind } from "../../../remux/samples.ts";
import { sniffFile } from "../../../remux/sniff.ts";
import { iso639ToBcp47 } from "../../../remux/language.ts";
import { type AudioLabel, roleNameOf, type TrackDetails } from "../../../remux/track-details.ts";
import type { CopyTarget } from "../../../remux/matroska/copy.ts";
import { checkAlpha, checkLeft, checkMerged, checkPadding, checkUnread } from "./check-merged.ts";
import { copyElements, copyWritten, detailsOf, matroskaSources, openPlain } from "./copy-matroska.ts";
import type { RemuxOptions } from "./remux.ts";
import { positionFrom } from "../texts/place-cues.ts";
import type { Source, SourceRole } from "../sources/plan.ts";
import type { SourceStream } from "../sources/source-stream.ts";

/** `audioChoice` is among the audio tracks of the file that has the first one; `additions` are for WebM and Matroska. */
interface MergeOptions extends Pick<RemuxOptions, "audioOnly" | "audioChoice" | "target" | "additions" | "signal"> {
  files: readonly MergedFile[];
  isMp4Wanted: boolean;
  /** What was copied of the files while they were fetched; `null`: nothing. */
  copy?: GrowingCopy | null;
}

/** A file with all of a source; `label` is what its format says of its audio. */
export type MergedFile = Pick<Source, "role"> & Pick<SourceStream, "label"> & { path: string };

/**
 * Merges the tracks of complete files into one file without re-encoding:
 * - WebM if it allows all codecs;
 * - else Matroska, if the files are and no MP4 can hold the tracks or tell all players that their audio is padded at its end;
 * - else fragmented MP4.
 *
 * Returns whether it is an MP4, which time of the files is its start, which tracks it has, what it lacks of what the files say of
 * these, and what differs from them.
 *
 * @throws ServiceError `format_unavailable` if there is no track, or neither container allows one of them.
 */
export async function mergeFiles(options: MergeOptions) {
  try {
    using opened = new DisposableStack();
    const files: (LocalInput & MergedFile)[] = [];
    for (const [i, file] of options.files.entries()) {
      files.push({ ...file, ...(await openPlain(file.path, `${options.target}.${i}`, opened, options)) });
    }
    const chosen = await chooseTracks(files, options);
    const unread = await checkUnread(files, chosen, options.audioOnly);
    if (chosen.length === 0) throw noTrackError(options, unread);
    const codecs = await Promise.all(chosen.map((track) => track.getCodec()));
    const { signal, target, isMp4Wanted } = options;
    const isWebm = !isMp4Wanted && codecs.every((codec) => webmCodecs.has(codec));
    const originS = Math.min(...(await Promise.all(chosen.map((track) => track.getFirstTimestamp()))));
    const additions = await options.additions.get(positionFrom(originS));
    const sources = matroskaSources(files, chosen);
    const isComplete = isWebm && options.copy?.finish(sources, additions) === true;
    if (!isComplete) options.copy?.discard();
    await using file = await open(target, isComplete ? "r+" : "w");
    const audioTracks = chosen.filter((track) => track.isAudioTrack()).length;
    /** Of what is written if the elements cannot be copied; `null`: an MP4. */
    const docType = isWebm ? "webm" : !isMp4Wanted && audioTracks > 1 ? "matroska" : null;
    const stated = statedLabels(audioTracks, files);
    const labels = isMp4Wanted ? [] : stated;
    const copy = { isWebm, fd: file.fd, additions, labels, signal };
    const isCopied = isComplete || (!isMp4Wanted && (await copyElements(sources, chosen, copy)));
    const isMp4 = !isCopied && docType === null;
    if (!isCopied && docType !== null) {
      await writeMatroska(files, chosen, file, { target, additions, docType, labels, signal });
    } else if (isMp4) {
      const format = new mediabunny.Mp4OutputFormat({ fastStart: "fragmented" });
      await write(files, chosen, new mediabunny.Output({ format, target: createFileTarget(file) }), signal);
    }
    const details = isCopied ? [] : withLabels(await detailsOf(files, chosen, sources), stated);
    const checks = [
      await checkMerged(files, chosen, options.target),
      await checkLeft(files, chosen),
      checkPadding(details),
      isMp4 ? checkAlpha(sources) : [],
    ];
    const warnings = [...unread, ...checks.flat()];
    const tracks = chosen.map(({ type }) => ({ kind: type as TrackKind }));
    return { isMp4, originS, details, tracks, warnings };
  } catch (error) {
    options.signal.throwIfAborted();
    const cause = diskError("write the file", error);
    if (cause instanceof ServiceError) throw cause;
    const named = await describeFiles(options.files.filter(({ role }) => role !== "further").map(({ path }) => path));
    throw new ServiceError("format_unavailable", `${named} cannot be put into MP4 or WebM`, { cause });
  }
}

/** Returns what the formats say of the audio tracks, in their order. */
export function statedLabels(audioTracks: number, files: readonly MergedFile[]): AudioLabel[] {
  const further = files.filter(({ role }) => role === "further");
  const { label } = files.find(({ role }) => role === "audio") ?? files[0]!;
  // Further tracks of one file say their languages themselves.
  const own = Array.from({ length: audioTracks - further.length }, (_, index) => (index === 0 ? label : unknown));
  return [...own, ...further.map((file) => file.label)];
}

/** Adds what the formats say of the audio tracks. */
function withLabels(details: readonly TrackDetails[], labels: readonly AudioLabel[]): TrackDetails[] {
  const left = [...labels];
  return details.map((each) => {
    const label = (each.kind === "audio" ? left.shift() : undefined) ?? unknown;
    const { language, audio_role: role, name = each.name || (roleNameOf(label) ?? "") } = label;
    return { ...each, language: language ?? each.language, name, audio_role: role ?? each.audio_role ?? null };
  });
}

const unknown: AudioLabel = { language: null };

function noTrackError({ audioOnly }: MergeOptions, unread: readonly FileWarning[]): ServiceError {
  const missing = `the downloaded media has ${audioOnly ? "no audio" : "neither video nor audio"}`;
  const reasons = unread.map(({ message }) => message).join("; ");
  return new ServiceError("format_unavailable", reasons || missing);
}

/** mediabunny writes the media; a copy has what is added to them. */
async function writeMatroska(
  files: readonly LocalInput[],
  chosen: readonly InputTrack[],
  file: FileHandle,
  { target, signal, ...copy }: Pick<MergeOptions, "target" | "signal"> & Omit<CopyTarget, "fd">,
): Promise<void> {
  const path = `${target}.plain`;
  const format = copy.docType === "webm" ? new mediabunny.WebMOutputFormat() : new mediabunny.MkvOutputFormat();
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(path, { force: true }));
  const plain = cleanup.use(await open(path, "w"));
  await write(files, chosen, new mediabunny.Output({ format, target: createFileTarget(plain) }), signal);
  await copyWritten(path, { ...copy, fd: file.fd }, signal);
}

/** One video track at most, of the file with the first audio the chosen tracks, and of each other file one audio track. */
async function chooseTracks(
  files: readonly (LocalInput & MergedFile)[],
  { audioOnly, audioChoice }: MergeOptions,
): Promise<InputTrack[]> {
  const find = (...roles: SourceRole[]) => files.flatMap(({ role, input }) => (roles.includes(role) ? [input] : []));
  const [[main], [separate]] = [find("main"), find("audio", "fallback")];
  const video = audioOnly ? null : await main?.getPrimaryVideoTrack();
  const own = find("audio").length === 0 ? await chooseAudioTracks(main, audioChoice) : [];
  const audio = own.length > 0 ? own : await chooseAudioTracks(separate, audioChoice);
  const further = await Promise.all(find("further").map((input) => input.getPrimaryAudioTrack()));
  return [video, ...audio, ...further].filter((track) => track !== null && track !== undefined);
}

/** The primary track of a file comes first. */
async function chooseAudioTracks(input: Input | undefined, choice: AudioChoice): Promise<InputTrack[]> {
  const primary = await input?.getPrimaryAudioTrack();
  if (input === undefined || !primary) return [];
  const tracks = [primary, ...(await input.getAudioTracks()).filter((track) => track !== primary)];
  const languages = await Promise.all(tracks.map((track) => track.getLanguageCode()));
  return choice.choose(languages.map((code) => iso639ToBcp47(code))).map(({ index }) => tracks[index]!);
}

/** Has a choice made among the audio tracks of a file that stays as it is. @throws ServiceError as `openLocalInput` */
export async function chooseInFile(path: string, choice: AudioChoice): Promise<void> {
  const container = sniffFile(path);
  if (container === "mpeg-ts") return chooseMpegTsAudio(path, choice);
  if (container === "mp4") return chooseMp4Audio(path, choice);
  using file = openLocalInput(path);
  await chooseAudioTracks(file.input, choice).catch(() => []);
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
  return new mediabunny.StreamTarget(writable, { chunked: true });
}

async function write(
  files: readonly LocalInput[],
  chosen: readonly InputTrack[],
  output: Output,
  signal: AbortSignal,
): Promise<void> {
  const trims = await trimStarts(files, chosen, output.format instanceof mediabunny.WebMOutputFormat);
  const conversions = new Set<Conversion>();
  // One after the other: the tracks of the output are in the order in which they are added.
  for (const track of chosen) {
    const choose = async (other: InputTrack) => ({ discard: other !== track });
    const conversion = await mediabunny.Conversion.init({
      input: track.input,
      output,
      video: choose,
      audio: choose,
      trim: { start: (trims[files.findIndex(({ input }) => input === track.input)] ?? 0) - leadS },
      copy: { mode: "forced", shiftTolerance: Number.POSITIVE_INFINITY },
      showWarnings: false,
      composable: true,
    });
    conversions.add(conversion);
  }
  const accepted = [...conversions].flatMap(({ utilizedTracks }) => utilizedTracks);
  if (accepted.length < chosen.length) throw new Error("a track was refused by the output format");
  const execute = (conversion: Conversion) => conversion.execute().finally(() => conversions.delete(conversion));
  const cancel = () => conversions.forEach((conversion) => void conversion.cancel());
  using _ = addAbortListener(signal, cancel);
  try {
    signal.throwIfAborted();
    await output.start();
    await Promise.all([...conversions].map(execute));
    await output.finalize();
  } catch (error) {
    // Stops the others: one that fails cancels itself, and logs it if that is done again.
    if (!signal.aborted) cancel();
    // Closing a failed target fails too; the first error counts.
    await output.cancel().catch(() => undefined);
    throw error;
  }
}

/**
 * How long before its first packet a track is copied: shorter than any tick. mediabunny leaves out a packet that lasts no time at the start: the first one of
 * Vorbis, short ones of Opus, and those of Matroska that are alone in their Cluster, as it knows no duration of them.
 */
const leadS = 1e-7;

/**
 * Returns the timestamp in each file that becomes 0: the same for all, as otherwise each file would move to its own start.
 * WebM loses the delay of a codec: tracks without a delay are moved by as much.
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
