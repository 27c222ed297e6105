import { createFileWindow, type FileWindow, openFile } from "../../../remux/open-file.ts";

/** Of a tag: its type, the size of its data, a time, and the number of its stream. */
const headerBytes = 11;
const streamAt = 8;
/** After each tag: its size, which some writers state otherwise. */
const sizeBytes = 4;
/** Audio, video, and data in two forms. */
const types: ReadonlySet<number> = new Set([8, 9, 15, 18]);
/** So many tags of one stream in a row are no other bytes by chance. */
const runTags = 3;
/** So many places that look like the first one, and are none, are in no file but one that was made for that. */
const maxRejected = 1000;

/**
 * Returns at how many places of an FLV file there are bytes between tags that are not tags, or a tag is cut off (Adobe Flash Video File
 * Format 10.1 §E.3); 0 of another file. Bytes after the last tag that do not begin like a tag do not count; of a file with a thousand
 * false tags, what follows them counts as one place.
 * @throws the file system's own errors.
 */
export function countFlvBreaks(path: string): number {
  using file = openFile(path);
  const window = createFileWindow(file);
  const head = window.at(0);
  if (head.length < 9 || head.toString("latin1", 0, 3) !== "FLV") return 0;
  let at = head.readUInt32BE(5) + sizeBytes;
  const search = { stream: window.at(at).subarray(streamAt, headerBytes).toString("latin1"), rejected: 0 };
  let count = 0;
  while (at < file.size) {
    const end = endOfTag(window, at);
    const next: number | undefined = end ?? findRun(window, at + 1, search);
    if (next === undefined) return search.rejected < maxRejected ? count : count + 1;
    // The size of the last tag may be missing.
    if (end === undefined || end - sizeBytes > file.size) count += 1;
    at = next;
  }
  return count;
}

/** Returns where the tag at `at`, with its size after it, ends; undefined: there is none. */
function endOfTag(file: FileWindow, at: number): number | undefined {
  const bytes = file.at(at);
  return bytes.length >= headerBytes && isType(bytes[0]!)
    ? at + headerBytes + bytes.readUIntBE(1, 3) + sizeBytes
    : undefined;
}

/** The bit 32 says that the data are encrypted. */
const isType = (byte: number): boolean => types.has(byte & ~32);

/** Returns where tags of the stream follow each other from `from` on; undefined: nowhere, or there are too many false ones. */
function findRun(file: FileWindow, from: number, search: { stream: string; rejected: number }): number | undefined {
  const { stream } = search;
  const isTag = (bytes: Buffer, at: number) =>
    isType(bytes[at]!) && bytes.toString("latin1", at + streamAt, at + headerBytes) === stream;
  const isRun = (start: number) => {
    let at: number | undefined = start;
    for (let count = 0; count < runTags && at !== undefined; count++)
      at = isTag(file.at(at), 0) ? endOfTag(file, at) : undefined;
    return at !== undefined && at - sizeBytes <= file.size;
  };
  for (let at = from; at + headerBytes <= file.size && search.rejected < maxRejected;) {
    const bytes = file.at(at);
    const last = bytes.length - headerBytes;
    let found = 0;
    while (found < last && !isTag(bytes, found)) found += 1;
    at += found;
    if (isRun(at)) return at;
    search.rejected += found < last ? 1 : 0;
    at += 1;
  }
  return undefined;
}
