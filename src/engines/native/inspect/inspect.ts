import { setImmediate as nextTurn } from "node:timers/promises";
import { diskError } from "../../../files/disk-error.ts";
import { ServiceError } from "../../../model/errors.ts";
import { type Mp4Summary, readMp4Summary } from "../../../remux/mp4/read/summary.ts";
import { readMpegTsSummary } from "../../../remux/mpeg-ts/summary.ts";
import { type FramesSummary, readFramesSummary } from "../../../remux/packed-audio/summary.ts";
import type { MediaSummary } from "../../../remux/media-summary.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import { readFileStart } from "./file-start.ts";
import { isCompleteFile } from "./file-complete.ts";
import { readByLibrary } from "./library.ts";
import type { MediaInfo } from "../../engine.ts";
import { readOgg } from "./ogg.ts";
import { readSignature } from "./signature.ts";
import { readWave } from "./wave.ts";

export interface InspectOptions {
  /** The server stated its size: a last frame that is cut off is so as published. */
  isSizeStated: boolean;
}

/**
 * Inspects a media file; of a container that only players can read, it returns just the type.
 *
 * @throws ServiceError `upstream_invalid` if it is no media file; `upstream_unreachable` if it is truncated,
 * because the connection was lost; `drm_protected`.
 */
export async function inspectFile(
  path: string,
  { isSizeStated }: InspectOptions = { isSizeStated: true },
): Promise<MediaInfo> {
  try {
    const info = await readInfo(path, isSizeStated);
    if (isCompleteFile(path)) return info;
    throw truncatedError();
  } catch (error) {
    const cause = diskError(`read ${path}`, error);
    if (cause instanceof ServiceError) throw cause;
    if (!isCompleteFile(path)) throw truncatedError(cause);
    throw new ServiceError(
      "upstream_invalid",
      "the downloaded file has no supported container (MP4, WebM, MKV, MOV, MP3, AAC, AC-3, Ogg, FLAC, WAV, TS, FLV, AVI, WMV, MPG)",
      { cause },
    );
  }
}

function truncatedError(cause?: unknown): ServiceError {
  return new ServiceError("upstream_unreachable", "the downloaded file is truncated", { cause });
}

const headBytes = 4096;

async function readInfo(path: string, isSizeStated: boolean): Promise<MediaInfo> {
  const head = readFileStart(path, Buffer.alloc(headBytes));
  const signature = readSignature(head);
  if (signature !== undefined) return { ...signature, duration: null, width: null, height: null };
  const container = sniffContainer(head);
  if (container === "mp4") return await mp4Info(path);
  if (container === "mpeg-ts") {
    return toInfo({ ext: "ts", mime_type: "video/mp2t" }, await inSteps(readMpegTsSummary(path)));
  }
  if (/^(?:RIFF|RF64).{4}WAVE/s.test(head.toString("latin1", 0, 12))) return readWave(path);
  const frames = await inSteps(readFramesSummary(path));
  if (frames !== undefined) return framesInfo(frames, isSizeStated);
  return readOgg(path, head) ?? (await readByLibrary(path));
}

async function mp4Info(path: string): Promise<MediaInfo> {
  const summary = await readMp4(path);
  if (summary === undefined) {
    throw new ServiceError("upstream_invalid", "the downloaded file has no track");
  }
  if (summary.isQuickTime) return toInfo({ ext: "mov", mime_type: "video/quicktime" }, summary);
  const kind = summary.hasVideo
    ? { ext: "mp4", mime_type: "video/mp4" }
    : { ext: "m4a", mime_type: "audio/mp4" };
  return toInfo(kind, summary);
}

/** Lets the event loop handle messages between the steps. */
async function inSteps<T>(steps: Generator<undefined, T>): Promise<T> {
  for (let next = steps.next(); ; next = steps.next()) {
    if (next.done === true) return next.value;
    await nextTurn();
  }
}

/** The index of a truncated file lists samples that it does not have. */
async function readMp4(path: string): Promise<Mp4Summary | undefined> {
  try {
    return await inSteps(readMp4Summary(path));
  } catch (error) {
    const isDamaged = error instanceof ServiceError && error.code === "upstream_invalid";
    throw isDamaged && !isCompleteFile(path) ? truncatedError(error) : error;
  }
}

const frameKinds = {
  aac: { ext: "aac", mime_type: "audio/aac" },
  "ac-3": { ext: "ac3", mime_type: "audio/ac3" },
  "ec-3": { ext: "eac3", mime_type: "audio/eac3" },
} as const;

function framesInfo(
  { codec, durationS, isComplete }: FramesSummary,
  isSizeStated: boolean,
): MediaInfo {
  if (!isComplete && !isSizeStated) throw truncatedError();
  return { ...frameKinds[codec], duration: durationS, width: null, height: null };
}

function toInfo(
  kind: Pick<MediaInfo, "ext" | "mime_type">,
  { durationS, width, height }: MediaSummary,
): MediaInfo {
  return { ...kind, duration: durationS, width, height };
}
