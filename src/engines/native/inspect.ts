import { type Input, type InputFormat, type InputVideoTrack } from "mediabunny";
import { diskError } from "../../disk-error.ts";
import { ServiceError } from "../../errors.ts";
import { openLocalInput } from "./local-input.ts";
import { isWhole } from "./whole.ts";

/** What a media file tells of itself. */
export interface Facts {
  /** Without the dot. */
  ext: string;
  mime_type: string;
  /** Seconds. */
  duration: number | null;
  /** Pixels as shown. */
  width: number | null;
  height: number | null;
}

/**
 * Reads the file at `path` back.
 *
 * @throws ServiceError `upstream_invalid` for what is no media file; `upstream_unreachable` for one that
 * ends before its own end: the connection that it came over was cut.
 */
export async function inspectFile(path: string): Promise<Facts> {
  const input = openLocalInput(path);
  try {
    const facts = await read(input);
    if (isWhole(path)) return facts;
    throw new ServiceError("upstream_unreachable", "the file that was received ends in its middle");
  } catch (error) {
    const cause = diskError(`read ${path}`, error);
    if (cause instanceof ServiceError) throw cause;
    if (!isWhole(path)) {
      throw new ServiceError("upstream_unreachable", "the file that was received ends too early", {
        cause,
      });
    }
    throw new ServiceError(
      "upstream_invalid",
      "what was received is no media file of a known kind (MP4, WebM, MKV, MOV, MP3, AAC, Ogg, FLAC, WAV, TS)",
      { cause },
    );
  } finally {
    input.dispose();
  }
}

async function read(input: Input): Promise<Facts> {
  const format = await input.getFormat();
  const tracks = await input.getTracks();
  if (tracks.length === 0) {
    throw new ServiceError("upstream_invalid", "the file that was received has no track");
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

/** By mediabunny's name of the container. */
const kinds: Readonly<Record<string, { ext: string; video: string; audio?: string }>> = {
  MP4: { ext: "mp4", video: "video/mp4", audio: "audio/mp4" },
  "QuickTime File Format": { ext: "mov", video: "video/quicktime" },
  Matroska: { ext: "mkv", video: "video/x-matroska", audio: "audio/x-matroska" },
  WebM: { ext: "webm", video: "video/webm", audio: "audio/webm" },
  "MPEG Transport Stream": { ext: "ts", video: "video/mp2t" },
  Ogg: { ext: "ogg", video: "video/ogg", audio: "audio/ogg" },
  MP3: { ext: "mp3", video: "audio/mpeg" },
  WAVE: { ext: "wav", video: "audio/wav" },
  FLAC: { ext: "flac", video: "audio/flac" },
  ADTS: { ext: "aac", video: "audio/aac" },
};

function kindOf(format: InputFormat, hasPictures: boolean) {
  const kind = kinds[format.name];
  if (kind === undefined) return { ext: "bin", mime_type: format.mimeType };
  const ext = kind.ext === "mp4" && !hasPictures ? "m4a" : kind.ext;
  return { ext, mime_type: hasPictures ? kind.video : (kind.audio ?? kind.video) };
}
