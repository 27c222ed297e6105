import { sniffMedium, usualTypes } from "../../../parsers/media-type.ts";
import type { MediaInfo } from "../../engine.ts";

export type MediaType = Pick<MediaInfo, "ext" | "mime_type">;

/** By extension; files that are made differ from what is usual, and pages do not link to Dolby's. */
const types = { ...usualTypes, ogg: "video/ogg", opus: "audio/ogg", ac3: "audio/ac3", eac3: "audio/eac3" } as const;

export type MediaExt = keyof typeof types;

/** Of files that have audio alone. */
const audioTypes: Partial<Record<MediaExt, MediaType>> = {
  mp4: { ext: "m4a", mime_type: "audio/mp4" },
  mkv: { ext: "mka", mime_type: "audio/x-matroska" },
  webm: { ext: "webm", mime_type: "audio/webm" },
  ogg: { ext: "ogg", mime_type: "audio/ogg" },
};

/** Returns the type of a file that usually has this extension. */
export function mediaType(ext: MediaExt, hasVideo = true): MediaType {
  return (hasVideo ? undefined : audioTypes[ext]) ?? { ext, mime_type: types[ext] };
}

/** Containers that only players can read. */
const unreadKinds = ["flv", "avi", "wmv", "mpg", "ogv"] as const;

/**
 * Returns the extension of a file that is kept unread; `undefined` for any other.
 * @param head The first bytes of the file, 512 or more if it has them.
 */
export function unreadKind(head: Uint8Array): (typeof unreadKinds)[number] | undefined {
  const ext = sniffMedium(head)?.ext;
  return unreadKinds.find((each) => each === ext);
}
