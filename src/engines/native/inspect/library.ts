import { type Input, type InputFormat, type InputVideoTrack } from "mediabunny";
import { ServiceError } from "../../../model/errors.ts";
import type { MediaInfo } from "../../engine.ts";
import { openLocalInput } from "./local-input.ts";

/**
 * Reads Matroska, WebM, Ogg, FLAC and MP3 with mediabunny.
 * @throws ServiceError `upstream_invalid` without a track; mediabunny's own errors.
 */
export async function readByLibrary(path: string): Promise<MediaInfo> {
  using file = openLocalInput(path);
  const { input } = file;
  const format = await input.getFormat();
  const tracks = await input.getTracks();
  if (tracks.length === 0) {
    throw new ServiceError("upstream_invalid", "the downloaded file has no track");
  }
  const video = await input.getPrimaryVideoTrack();
  const duration = (await input.getDurationFromMetadata()) ?? (await measureDuration(input));
  return {
    ...kindOf(format, video !== null),
    duration: Number.isFinite(duration) && duration > 0 ? duration : null,
    ...(video === null ? { width: null, height: null } : await sizeOf(video)),
  };
}

/** mediabunny's duration is the last time stamp: that of a stream which was recorded late is larger. */
async function measureDuration(input: Input): Promise<number> {
  const end = await input.computeDuration();
  return end - Math.max(0, await input.getFirstTimestamp());
}

async function sizeOf(video: InputVideoTrack) {
  return { width: await video.getDisplayWidth(), height: await video.getDisplayHeight() };
}

/** Types by mediabunny's name of the container. */
const kinds: Readonly<
  Record<string, { ext: string; video: string; audioExt?: string; audio?: string }>
> = {
  Matroska: {
    ext: "mkv",
    video: "video/x-matroska",
    audioExt: "mka",
    audio: "audio/x-matroska",
  },
  WebM: { ext: "webm", video: "video/webm", audio: "audio/webm" },
  Ogg: { ext: "ogg", video: "video/ogg", audio: "audio/ogg" },
  MP3: { ext: "mp3", video: "audio/mpeg" },
  FLAC: { ext: "flac", video: "audio/flac" },
};

function kindOf(format: InputFormat, hasVideo: boolean) {
  const kind = kinds[format.name];
  if (kind === undefined) return { ext: "bin", mime_type: format.mimeType };
  const { ext, video, audioExt = ext, audio = video } = kind;
  return hasVideo ? { ext, mime_type: video } : { ext: audioExt, mime_type: audio };
}
