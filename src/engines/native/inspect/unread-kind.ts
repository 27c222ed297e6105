import { sniffMedium } from "../../../parsers/media-type.ts";

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

/** Whether a file with this extension is kept unread, and only its page says whether it has video: of these kinds, Ogg shows that itself. */
export function hidesVideo(ext: string): boolean {
  return ext !== "ogv" && unreadKinds.some((each) => each === ext);
}

/**
 * Yields the codecs of the streams in the header of an AVI file (`strh`, and `strf` after it), in their order: four characters of video, a
 * number of audio; `null`: it is another stream, or cut off.
 */
export function* readAviCodecs(head: Buffer): Generator<string | number | null> {
  for (let at = head.indexOf("strh"); at >= 0 && at + 16 <= head.length; at = head.indexOf("strh", at + 4)) {
    const type = head.toString("latin1", at + 8, at + 12);
    const format = at + 16 + head.readUInt32LE(at + 4);
    if (format + 20 > head.length) yield null;
    else if (type === "vids") yield head.toString("latin1", format + 16, format + 20);
    else yield type === "auds" ? head.readUInt16LE(format) : null;
  }
}
