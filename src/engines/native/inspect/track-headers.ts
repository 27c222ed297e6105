import { ServiceError } from "../../../model/errors.ts";
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
  search(source, readElement, ({ id, start, end }) => {
    if (id !== codecDelay) return ebmlContainers.has(id) ? { start, end } : undefined;
    for (let at = start; at < end; at += 1) nanoseconds = nanoseconds * 256 + source.u8(at);
    return "CodecDelay";
  });
  return nanoseconds < maxDelayNs ? nanoseconds / 1e9 : 0;
}

/** A longer delay is none: that of Opus is 80 ms at most. */
const maxDelayNs = 1e9;

const isEbml = (source: NumberSource): boolean => source.size >= 4 && source.u32(0) === ebmlId;

/** Where in a file the children of an element or box are. */
interface Range {
  start: number;
  end: number;
}

interface Element extends Range {
  id: number;
}

/** Of all levels together; a file that has more is checked elsewhere. */
const maxElements = 20_000;

/** Returns the first element for which `visit` returns a name. `visit` returns a range to read its children. */
function search(
  source: NumberSource,
  read: (source: NumberSource, range: Range) => Element | undefined,
  visit: (element: Element) => string | Range | undefined,
): string | undefined {
  const open: Range[] = [{ start: 0, end: source.size }];
  for (let left = maxElements; left > 0; left -= 1) {
    const range = open.at(-1);
    if (range === undefined) return undefined;
    const element = read(source, range);
    if (element === undefined) {
      open.pop();
      continue;
    }
    range.start = element.end;
    const found = visit(element);
    if (typeof found === "string") return found;
    if (found !== undefined) open.push(found);
  }
  return undefined;
}

const boxType = (type: string): number => Buffer.from(type, "latin1").readUInt32BE();
const boxTypes = (types: string): ReadonlySet<number> => new Set(types.split(" ").map(boxType));
const mp4Containers = boxTypes("moov trak mdia minf stbl");
const sampleDescription = boxType("stsd");
/** Sample entries of protected tracks (ISO/IEC 14496-12 §8.12, and those of FairPlay). */
const protectedEntries = boxTypes("encv enca drmi drms");

function findMp4Encryption(source: NumberSource): string | undefined {
  return search(source, readBox, ({ id, start, end }) => {
    if (protectedEntries.has(id)) {
      const type = Buffer.alloc(4);
      type.writeUInt32BE(id);
      return type.toString("latin1");
    }
    if (id === sampleDescription) return { start: start + 8, end };
    return mp4Containers.has(id) ? { start, end } : undefined;
  });
}

function readBox(source: NumberSource, { start, end }: Range): Element | undefined {
  if (end - start < 8) return undefined;
  const listed = source.u32(start);
  const id = source.u32(start + 4);
  const isLong = listed === 1 && end - start >= 16;
  const long = isLong ? source.u32(start + 8) * 2 ** 32 + source.u32(start + 12) : 0;
  const size = listed === 0 ? end - start : isLong ? long : listed;
  const body = start + (isLong ? 16 : 8);
  return start + size < body || start + size > end ? undefined : { id, start: body, end: start + size };
}

const ebmlId = 0x1a45dfa3;
/** Segment, Tracks, TrackEntry, ContentEncodings, ContentEncoding (RFC 9559 §5.1). */
const ebmlContainers: ReadonlySet<number> = new Set([0x18538067, 0x1654ae6b, 0xae, 0x6d80, 0x6240]);
const contentEncryption = 0x5035;
const codecDelay = 0x56aa;

function findEbmlEncryption(source: NumberSource): string | undefined {
  return search(source, readElement, ({ id, start, end }) => {
    if (id === contentEncryption) return "ContentEncryption";
    return ebmlContainers.has(id) ? { start, end } : undefined;
  });
}

/** An element of unknown size reaches to the end of its parent. */
function readElement(source: NumberSource, { start, end }: Range): Element | undefined {
  const id = readVarInt(source, { start, end }, 4);
  const size = id && readVarInt(source, { start: id.end, end });
  if (id === undefined || size === undefined) return undefined;
  const stop = size.isUnknown ? end : size.end + size.value;
  const marker = 2 ** (7 * (id.end - start));
  return stop > end ? undefined : { id: id.value + marker, start: size.end, end: stop };
}

/**
 * Reads a variable-size integer (RFC 8794 §4) of at most 8 bytes without its length marker. As a size it is unknown
 * if all its bits are set.
 */
export function readVarInt(
  source: NumberSource,
  { start, end }: Range,
  maxLength = 8,
): { value: number; isUnknown: boolean; end: number } | undefined {
  if (start >= end) return undefined;
  const first = source.u8(start);
  const length = Math.clz32(first) - 23;
  if (length > maxLength || start + length > end) return undefined;
  let value = first & (0xff >> length);
  for (let at = start + 1; at < start + length; at += 1) value = value * 256 + source.u8(at);
  return { value, isUnknown: value === 2 ** (7 * length) - 1, end: start + length };
}
