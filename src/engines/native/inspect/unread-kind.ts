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
