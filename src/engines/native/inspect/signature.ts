import type { Download } from "../../engine.ts";

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
export function readSignature(head: Buffer): Pick<Download, "ext" | "mime_type"> | undefined {
  const text = head.toString("latin1", 0, 512);
  const found = signatures.find(([pattern]) => pattern.test(text));
  return found && { ext: found[1], mime_type: found[2] };
}
