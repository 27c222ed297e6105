import { setImmediate as nextTurn } from "node:timers/promises";
import { diskError } from "../../../files/disk-error.ts";
import { isServiceError, ServiceError } from "../../../model/errors.ts";
import { type Mp4Summary, readMp4Summary } from "../../../remux/mp4/read/summary.ts";
import { readMpegTsSummary } from "../../../remux/mpeg-ts/summary.ts";
import { type FramesSummary, readFramesSummary } from "../../../remux/packed-audio/summary.ts";
import type { MediaSummary } from "../../../remux/media-summary.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import { readOgg } from "./ogg.ts";
import { openFile, readFileStart } from "../../../remux/open-file.ts";
import { readByLibrary } from "./local-input.ts";
import type { MediaInfo } from "../../engine.ts";
import { type PcmContainer, readPcmContainer } from "./pcm-containers.ts";
import { isCompleteFile } from "./whole-file.ts";

/**
 * Inspects a media file; of a container that only players can read, it returns just the type.
 *
 * @param isLengthKnown The server sent its size: a last frame that is cut off is so as published.
 * @throws ServiceError `upstream_invalid` if it is no media file; `upstream_unreachable` if it is truncated,
 * because the connection was lost; `drm_protected`.
 */
export async function inspectFile(path: string, isLengthKnown = true): Promise<MediaInfo> {
  try {
    const info = await readInfo(path, isLengthKnown);
    if (isCompleteFile(path)) return info;
    throw truncatedError();
  } catch (error) {
    const cause = diskError(`read ${path}`, error);
    if (cause instanceof ServiceError) throw cause;
    if (!isCompleteFile(path)) throw truncatedError(cause);
    throw new ServiceError(
      "upstream_invalid",
      "the downloaded file has no supported container (MP4, WebM, MKV, MOV, MP3, AAC, AC-3, Ogg, FLAC, WAV, AIFF, AU, CAF, W64, TS, FLV, AVI, WMV, MPG)",
      { cause },
    );
  }
}

/** Returns the error for a file that lacks its end. */
export function truncatedError(cause?: unknown): ServiceError {
  return new ServiceError("upstream_unreachable", "the downloaded file is truncated", { cause });
}

type MediaType = Pick<MediaInfo, "ext" | "mime_type">;

const headBytes = 4096;

async function readInfo(path: string, isLengthKnown: boolean): Promise<MediaInfo> {
  const head = readFileStart(path, Buffer.alloc(headBytes));
  const signature = readSignature(head);
  if (signature !== undefined) return { ...signature, duration: null, width: null, height: null };
  const container = sniffContainer(head);
  if (container === "mp4") return await mp4Info(path);
  if (container === "mpeg-ts") {
    return toInfo({ ext: "ts", mime_type: "video/mp2t" }, await inSteps(readMpegTsSummary(path)));
  }
  const pcm = readPcm(path);
  if (pcm?.damage !== undefined) throw new ServiceError("upstream_invalid", pcm.damage);
  if (pcm !== undefined) return pcm.info;
  const frames = await inSteps(readFramesSummary(path));
  if (frames !== undefined) return framesInfo(frames, isLengthKnown);
  return readOgg(path, head) ?? (await readByLibrary(path));
}

function readPcm(path: string): PcmContainer | undefined {
  using file = openFile(path);
  return readPcmContainer(file);
}

/** Containers that only players can read, as patterns of bytes in Latin-1. */
const signatures: readonly (readonly [pattern: RegExp, ext: string, mime_type: string])[] = [
  [/^FLV\x01/, "flv", "video/x-flv"],
  [/^RIFF.{4}AVI /s, "avi", "video/x-msvideo"],
  [/^\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c/, "wmv", "video/x-ms-wmv"],
  // A pack header (ISO/IEC 13818-1 §2.5.3.3), or the sequence header of a bare stream.
  [/^\x00\x00\x01[\xba\xb3]/, "mpg", "video/mpeg"],
  // The page of the video stream is the first or the second one.
  [/^OggS.{20,500}\x80theora/s, "ogv", "video/ogg"],
];

/**
 * Returns the container of a file that is kept unread; `undefined` for any other.
 * @param head The first bytes of the file, 512 or more if it has them.
 */
function readSignature(head: Buffer): MediaType | undefined {
  const text = head.toString("latin1", 0, 512);
  const found = signatures.find(([pattern]) => pattern.test(text));
  return found && { ext: found[1], mime_type: found[2] };
}

async function mp4Info(path: string): Promise<MediaInfo> {
  const summary = await readMp4(path);
  if (summary === undefined) throw new ServiceError("upstream_invalid", "the downloaded file has no track");
  if (summary.isQuickTime) return toInfo({ ext: "mov", mime_type: "video/quicktime" }, summary);
  const kind = summary.hasVideo ? { ext: "mp4", mime_type: "video/mp4" } : { ext: "m4a", mime_type: "audio/mp4" };
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
    const isDamaged = isServiceError(error, "upstream_invalid");
    throw isDamaged && !isCompleteFile(path) ? truncatedError(error) : error;
  }
}

const frameKinds = {
  aac: { ext: "aac", mime_type: "audio/aac" },
  "ac-3": { ext: "ac3", mime_type: "audio/ac3" },
  "ec-3": { ext: "eac3", mime_type: "audio/eac3" },
} as const;

function framesInfo({ codec, durationS, isComplete }: FramesSummary, isLengthKnown: boolean): MediaInfo {
  if (!isComplete && !isLengthKnown) throw truncatedError();
  return { ...frameKinds[codec], duration: durationS, width: null, height: null };
}

function toInfo(kind: MediaType, { durationS, width, height }: MediaSummary): MediaInfo {
  return { ...kind, duration: durationS, width, height };
}
