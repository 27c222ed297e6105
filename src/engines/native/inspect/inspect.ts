import { basename } from "node:path";
import { diskError } from "../../../files/disk-error.ts";
import { isServiceError, ServiceError } from "../../../model/errors.ts";
import { type Mp4Summary, readMp4Summary } from "../../../remux/mp4/read/summary.ts";
import { readMpegTsSummary } from "../../../remux/mpeg-ts/summary.ts";
import { readMp3Details } from "../../../remux/packed-audio/mp3-table.ts";
import {
  type FramesSummary,
  measureMp3,
  readCutFrames,
  readFramesSummary,
} from "../../../remux/packed-audio/summary.ts";
import type { MediaSummary } from "../../../remux/media-summary.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import { runSteps } from "../../../remux/steps.ts";
import { countOggLinks } from "../../../remux/audio-files/ogg-pages.ts";
import { readCutVorbis, readOgg } from "./ogg.ts";
import { openFile, readFileStart } from "../../../remux/open-file.ts";
import { readByLibrary } from "./local-input.ts";
import type { MediaInfo } from "../../engine.ts";
import { type FileType, fileType } from "../../../parsers/media-type.ts";
import { textKind } from "../parts/media-check.ts";
import { unreadKind } from "./unread-kind.ts";
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
    const cause = diskError(`read ${basename(path)}`, error);
    if (cause instanceof ServiceError) throw cause;
    if (!isCompleteFile(path)) throw truncatedError(cause);
    const text = textKind(path);
    const rule =
      "has no supported container (MP4, WebM, MKV, MOV, MP3, AAC, AC-3, Ogg, FLAC, WAV, AIFF, AU, CAF, W64, TS, FLV, AVI, WMV, MPG)";
    const fault = text === undefined ? rule : `is text (${text}), not media`;
    throw new ServiceError("upstream_invalid", `the downloaded file ${fault}`, { cause });
  }
}

/** Returns the error for a file that lacks its end. */
export function truncatedError(cause?: unknown): ServiceError {
  return new ServiceError("upstream_unreachable", "the downloaded file is truncated", { cause });
}

const headBytes = 4096;

async function readInfo(path: string, isLengthKnown: boolean): Promise<MediaInfo> {
  const head = readFileStart(path, Buffer.alloc(headBytes));
  const unread = unreadKind(head);
  if (unread !== undefined) return { ...fileType(unread), duration: null, width: null, height: null };
  const container = sniffContainer(head);
  if (container === "mp4") return await mp4Info(path);
  if (container === "mpeg-ts") return toInfo(fileType("ts"), await runSteps(readMpegTsSummary(path)));
  const pcm = readPcm(path);
  if (pcm?.damage !== undefined) throw new ServiceError("upstream_invalid", pcm.damage);
  if (pcm !== undefined) return pcm.info;
  const frames = await runSteps(readFramesSummary(path));
  if (frames !== undefined) return framesInfo(frames, isLengthKnown);
  const info = readOgg(path) ?? (await readByLibraryOrFrames(path, isLengthKnown));
  // Times begin again with each of its streams.
  if (countOggLinks(path) > 1) return { ...info, duration: null };
  if (info.ext !== "mp3") return info;
  // Without a table, the library takes the bit rate of the first frame for that of all.
  const durationS = (await runSteps(measureMp3(path))) ?? info.duration;
  return { ...info, duration: durationS === null ? null : presentedOf(path, durationS) };
}

/** The library reads no audio that begins within a frame, and no Vorbis that ends within a page; only what it cannot read is taken for these. */
async function readByLibraryOrFrames(path: string, isLengthKnown: boolean): Promise<MediaInfo> {
  try {
    return await readByLibrary(path);
  } catch (error) {
    const vorbis = readCutVorbis(path);
    if (vorbis !== undefined) return vorbis;
    const frames = await runSteps(readCutFrames(path));
    if (frames === undefined) throw error;
    return framesInfo(frames, isLengthKnown);
  }
}

/** Returns how much of an MP3 file is presented, whose frames last so long. */
function presentedOf(path: string, durationS: number): number {
  using file = openFile(path);
  const { delayS, paddingS } = readMp3Details(file) ?? { delayS: 0, paddingS: 0 };
  const presentedS = durationS - delayS - paddingS;
  return presentedS > 0 ? presentedS : durationS;
}

function readPcm(path: string): PcmContainer | undefined {
  using file = openFile(path);
  return readPcmContainer(file);
}

async function mp4Info(path: string): Promise<MediaInfo> {
  const summary = await readMp4(path);
  if (summary === undefined) throw new ServiceError("upstream_invalid", "the downloaded file has no track");
  return toInfo(summary.isQuickTime ? fileType("mov") : fileType("mp4", summary.hasVideo), summary);
}

/** The index of a truncated file lists samples that it does not have. */
async function readMp4(path: string): Promise<Mp4Summary | undefined> {
  try {
    return await runSteps(readMp4Summary(path));
  } catch (error) {
    const isDamaged = isServiceError(error, "upstream_invalid");
    throw isDamaged && !isCompleteFile(path) ? truncatedError(error) : error;
  }
}

/** Extensions by codec. */
const frameKinds = { mp3: "mp3", aac: "aac", "ac-3": "ac3", "ec-3": "eac3" } as const;

function framesInfo({ codec, durationS, isComplete }: FramesSummary, isLengthKnown: boolean): MediaInfo {
  if (!isComplete && !isLengthKnown) throw truncatedError();
  return { ...fileType(frameKinds[codec]), duration: durationS, width: null, height: null };
}

function toInfo(kind: FileType, { durationS, width, height }: MediaSummary): MediaInfo {
  return { ...kind, duration: durationS, width, height };
}
