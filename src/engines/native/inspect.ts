import { type Input, type InputFormat, type InputVideoTrack } from "mediabunny";
import { diskError } from "../../files/disk-error.ts";
import { ServiceError } from "../../errors.ts";
import type { Download } from "../engine.ts";
import { type LocalInput, openLocalInput } from "./local-input.ts";
import { readSignature } from "./signature.ts";
import { isCompleteFile } from "./file-complete.ts";

/** What a media file states. */
export type MediaInfo = Omit<Download, "path" | "size" | "sha256" | "warnings">;

/**
 * Inspects a media file; of a container that only players can read, it returns just the type.
 *
 * @throws ServiceError `upstream_invalid` if it is no media file; `upstream_unreachable` if it is truncated,
 * because the connection was lost.
 */
export async function inspectFile(path: string): Promise<MediaInfo> {
  try {
    const signature = readSignature(path);
    if (signature !== undefined) return { ...signature, duration: null, width: null, height: null };
    using file = openComplete(path);
    const info = await readInfo(file.input);
    if (isCompleteFile(path)) return info;
    throw truncatedError();
  } catch (error) {
    const cause = diskError(`read ${path}`, error);
    if (cause instanceof ServiceError) throw cause;
    if (!isCompleteFile(path)) throw truncatedError(cause);
    throw new ServiceError(
      "upstream_invalid",
      "the downloaded file has no supported container (MP4, WebM, MKV, MOV, MP3, AAC, Ogg, FLAC, WAV, TS, FLV, AVI, WMV, MPG)",
      { cause },
    );
  }
}

/** The index of a truncated file lists samples that it does not have. */
function openComplete(path: string): LocalInput {
  try {
    return openLocalInput(path);
  } catch (error) {
    throw error instanceof ServiceError && !isCompleteFile(path) ? truncatedError(error) : error;
  }
}

function truncatedError(cause?: unknown): ServiceError {
  return new ServiceError("upstream_unreachable", "the downloaded file is truncated", { cause });
}

async function readInfo(input: Input): Promise<MediaInfo> {
  const format = await input.getFormat();
  const tracks = await input.getTracks();
  if (tracks.length === 0) {
    throw new ServiceError("upstream_invalid", "the downloaded file has no track");
  }
  const video = await input.getPrimaryVideoTrack();
  const duration = (await input.getDurationFromMetadata()) ?? (await input.computeDuration());
  return {
    ...kindOf(format, video !== null),
    duration: Number.isFinite(duration) && duration > 0 ? duration : null,
    ...(video === null ? { width: null, height: null } : await sizeOf(video)),
  };
}

async function sizeOf(video: InputVideoTrack) {
  return { width: await video.getDisplayWidth(), height: await video.getDisplayHeight() };
}

/** Types by mediabunny's name of the container. */
const kinds: Readonly<
  Record<string, { ext: string; video: string; audioExt?: string; audio?: string }>
> = {
  MP4: { ext: "mp4", video: "video/mp4", audioExt: "m4a", audio: "audio/mp4" },
  "QuickTime File Format": { ext: "mov", video: "video/quicktime" },
  Matroska: {
    ext: "mkv",
    video: "video/x-matroska",
    audioExt: "mka",
    audio: "audio/x-matroska",
  },
  WebM: { ext: "webm", video: "video/webm", audio: "audio/webm" },
  "MPEG Transport Stream": { ext: "ts", video: "video/mp2t" },
  Ogg: { ext: "ogg", video: "video/ogg", audio: "audio/ogg" },
  MP3: { ext: "mp3", video: "audio/mpeg" },
  WAVE: { ext: "wav", video: "audio/wav" },
  FLAC: { ext: "flac", video: "audio/flac" },
  ADTS: { ext: "aac", video: "audio/aac" },
};

function kindOf(format: InputFormat, hasVideo: boolean) {
  const kind = kinds[format.name];
  if (kind === undefined) return { ext: "bin", mime_type: format.mimeType };
  const { ext, video, audioExt = ext, audio = video } = kind;
  return hasVideo ? { ext, mime_type: video } : { ext: audioExt, mime_type: audio };
}
