import { ServiceError } from "../../../model/errors.ts";
import { type Element, ebmlId, readElement } from "../../../remux/ebml.ts";
import { readBox } from "../../../remux/mp4/read/check-tables.ts";
import { type NumberSource, numbersInFile } from "../../../remux/mp4/read/number-source.ts";

/**
 * Checks that an open file, MP4 or WebM, says of none of its tracks that it is encrypted. Says nothing of
 * damaged files and other containers.
 *
 * @throws ServiceError `drm_protected`; the file system's own errors.
 */
export function checkNotEncrypted(fd: number): void {
  const source = numbersInFile(fd);
  const found = isEbml(source) ? findEbmlEncryption(source) : findMp4Encryption(source);
  if (found === undefined) return;
  throw new ServiceError("drm_protected", `the media are encrypted ("${found}")`);
}

/**
 * Returns how much earlier than its time stamps the audio of an open WebM file is presented (CodecDelay, RFC
 * 9559 §5.1.4.1.25), seconds; 0 for other containers.
 */
export function readCodecDelay(fd: number): number {
  const source = numbersInFile(fd);
  let nanoseconds = 0;
  if (!isEbml(source)) return 0;
  search(source, readWholeElement, (element) => {
    const { id, body, end } = element;
    if (id !== codecDelay) return ebmlContainers.has(id) ? element : undefined;
    for (let at = body; at < end; at += 1) nanoseconds = nanoseconds * 256 + source.u8(at);
    return "CodecDelay";
  });
  return nanoseconds < maxDelayNs ? nanoseconds / 1e9 : 0;
}

/** A longer delay is none: that of Opus is 80 ms at most. */
const maxDelayNs = 1e9;

const isEbml = (source: NumberSource): boolean => source.size >= 4 && source.u32(0) === ebmlId;

/** Where in a file the children of an element or box are. */
type Range = Pick<Element, "body" | "end">;

/** Of all levels together; a file that has more is checked elsewhere. */
const maxElements = 20_000;

/** Returns the first element for which `visit` returns a name. `visit` returns a range to read its children. */
function search<T extends Range>(
  source: NumberSource,
  read: (source: NumberSource, start: number, end: number) => T | undefined,
  visit: (element: T) => string | Range | undefined,
): string | undefined {
  const open: Range[] = [{ body: 0, end: source.size }];
  for (let left = maxElements; left > 0; left -= 1) {
    const range = open.at(-1);
    if (range === undefined) return undefined;
    const element = read(source, range.body, range.end);
    if (element === undefined) {
      open.pop();
      continue;
    }
    range.body = element.end;
    const found = visit(element);
    if (typeof found === "string") return found;
    if (found !== undefined) open.push({ body: found.body, end: found.end });
  }
  return undefined;
}

const mp4Containers: ReadonlySet<string> = new Set("moov trak mdia minf stbl".split(" "));
/** Sample entries of protected tracks (ISO/IEC 14496-12 §8.12, and those of FairPlay). */
const protectedEntries: ReadonlySet<string> = new Set("encv enca drmi drms".split(" "));

function findMp4Encryption(source: NumberSource): string | undefined {
  return search(source, readBox, (box) => {
    if (protectedEntries.has(box.type)) return box.type;
    if (box.type === "stsd") return { body: box.body + 8, end: box.end };
    return mp4Containers.has(box.type) ? box : undefined;
  });
}

/** Segment, Tracks, TrackEntry, ContentEncodings, ContentEncoding (RFC 9559 §5.1). */
const ebmlContainers: ReadonlySet<number> = new Set([0x18538067, 0x1654ae6b, 0xae, 0x6d80, 0x6240]);
const contentEncryption = 0x5035;
const codecDelay = 0x56aa;

function findEbmlEncryption(source: NumberSource): string | undefined {
  return search(source, readWholeElement, (element) => {
    if (element.id === contentEncryption) return "ContentEncryption";
    return ebmlContainers.has(element.id) ? element : undefined;
  });
}

/** An element of unknown size reaches to the end of its parent; undefined for one that is longer than it. */
function readWholeElement(source: NumberSource, start: number, end: number): Element | undefined {
  const found = readElement(source, start, end);
  if (found?.end === Infinity) return { ...found, end };
  return found !== undefined && found.end <= end ? found : undefined;
}
