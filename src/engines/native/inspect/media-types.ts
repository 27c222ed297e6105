import type { MediaInfo } from "../../engine.ts";

export type MediaType = Pick<MediaInfo, "ext" | "mime_type">;

/** Of the files that are made or read, by extension; after that of video, the extension and type of a file that has audio alone. */
const types = {
  mp4: ["video/mp4", "m4a", "audio/mp4"],
  mov: ["video/quicktime"],
  mkv: ["video/x-matroska", "mka", "audio/x-matroska"],
  webm: ["video/webm", "webm", "audio/webm"],
  ogg: ["video/ogg", "ogg", "audio/ogg"],
  opus: ["audio/ogg"],
  ts: ["video/mp2t"],
  mp3: ["audio/mpeg"],
  aac: ["audio/aac"],
  ac3: ["audio/ac3"],
  eac3: ["audio/eac3"],
  flac: ["audio/flac"],
  wav: ["audio/wav"],
  flv: ["video/x-flv"],
  avi: ["video/x-msvideo"],
  wmv: ["video/x-ms-wmv"],
  mpg: ["video/mpeg"],
  ogv: ["video/ogg"],
} as const satisfies Record<string, readonly [type: string, audioExt?: string, audioType?: string]>;

export type MediaExt = keyof typeof types;

/** Returns the type of a file that usually has this extension. */
export function mediaType(ext: MediaExt, hasVideo = true): MediaType {
  const [mime_type, audioExt = ext, audioType = mime_type] = types[ext];
  return hasVideo ? { ext, mime_type } : { ext: audioExt, mime_type: audioType };
}

/** Containers that only players can read, as patterns of bytes in Latin-1. */
const signatures = [
  [/^FLV\x01/, "flv"],
  [/^RIFF.{4}AVI /s, "avi"],
  [/^\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c/, "wmv"],
  // A pack header (ISO/IEC 13818-1 §2.5.3.3), or the sequence header of a bare stream.
  [/^\x00\x00\x01[\xba\xb3]/, "mpg"],
  // The page of the video stream is the first or the second one.
  [/^OggS.{20,500}\x80theora/s, "ogv"],
] as const;

/**
 * Returns the extension of a file that is kept unread; `undefined` for any other.
 * @param head The first bytes of the file, 512 or more if it has them.
 */
export function unreadKind(head: Buffer): (typeof signatures)[number][1] | undefined {
  const text = head.toString("latin1", 0, 512);
  return signatures.find(([pattern]) => pattern.test(text))?.[1];
}
