import { ServiceError } from "../../model/errors.ts";
import { readFully } from "../mp4/read/file-boxes.ts";
import type { NumberSource } from "../mp4/read/number-source.ts";
import type { ByteSpan } from "../samples.ts";

/** Elements of EBML (RFC 8794 §11) and Matroska (RFC 9559 §5.1) that are read or written. */
export const ids = {
  ebml: 0x1a45dfa3,
  void: 0xec,
  crc32: 0xbf,
  ebmlVersion: 0x4286,
  ebmlReadVersion: 0x42f7,
  ebmlMaxIdLength: 0x42f2,
  ebmlMaxSizeLength: 0x42f3,
  docType: 0x4282,
  docTypeVersion: 0x4287,
  docTypeReadVersion: 0x4285,
  segment: 0x18538067,
  seekHead: 0x114d9b74,
  seek: 0x4dbb,
  seekId: 0x53ab,
  seekPosition: 0x53ac,
  info: 0x1549a966,
  timestampScale: 0x2ad7b1,
  duration: 0x4489,
  muxingApp: 0x4d80,
  writingApp: 0x5741,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  trackNumber: 0xd7,
  trackUid: 0x73c5,
  trackType: 0x83,
  flagEnabled: 0xb9,
  codecId: 0x86,
  codecPrivate: 0x63a2,
  codecDelay: 0x56aa,
  defaultDuration: 0x23e383,
  language: 0x22b59c,
  languageBcp47: 0x22b59d,
  name: 0x536e,
  encodings: 0x6d80,
  encoding: 0x6240,
  encodingScope: 0x5032,
  encryption: 0x5035,
  compression: 0x5034,
  compressionAlgorithm: 0x4254,
  compressionSettings: 0x4255,
  video: 0xe0,
  alphaMode: 0x53c0,
  pixelWidth: 0xb0,
  pixelHeight: 0xba,
  displayWidth: 0x54b0,
  displayHeight: 0x54ba,
  displayUnit: 0x54b2,
  cluster: 0x1f43b675,
  timestamp: 0xe7,
  simpleBlock: 0xa3,
  blockGroup: 0xa0,
  block: 0xa1,
  blockDuration: 0x9b,
  referenceBlock: 0xfb,
  discardPadding: 0x75a2,
  blockAdditions: 0x75a1,
  blockMore: 0xa6,
  blockAdditional: 0xa5,
  flagDefault: 0x88,
  flagForced: 0x55aa,
  flagHearingImpaired: 0x55ab,
  flagVisualImpaired: 0x55ac,
  flagCommentary: 0x55af,
  flagLacing: 0x9c,
  chapters: 0x1043a770,
  editionEntry: 0x45b9,
  editionUid: 0x45bc,
  editionFlagHidden: 0x45bd,
  editionFlagDefault: 0x45db,
  chapterAtom: 0xb6,
  chapterUid: 0x73c4,
  chapterFlagHidden: 0x98,
  chapterTimeStart: 0x91,
  chapterTimeEnd: 0x92,
  chapterDisplay: 0x80,
  chapterString: 0x85,
  chapterLanguage: 0x437c,
  tags: 0x1254c367,
  tag: 0x7373,
  targets: 0x63c0,
  targetType: 0x63ca,
  targetTypeValue: 0x68ca,
  simpleTag: 0x67c8,
  tagName: 0x45a3,
  tagString: 0x4487,
  attachments: 0x1941a469,
  attachedFile: 0x61a7,
  fileName: 0x466e,
  fileMediaType: 0x4660,
  fileData: 0x465c,
  fileUid: 0x46ae,
  title: 0x7ba9,
  cues: 0x1c53bb6b,
  cuePoint: 0xbb,
  cueTime: 0xb3,
  cueTrackPositions: 0xb7,
  cueTrack: 0xf7,
  cueClusterPosition: 0xf1,
} as const;

/** An EBML element (RFC 8794 §5): where its content begins and ends, in the file or bytes that have it. */
export interface Element {
  id: number;
  body: number;
  /** May be after what is there; Infinity if the size is unknown (§6.2). */
  end: number;
}

/** Reads the head of the element at `start`, which must end by `limit`; undefined if there is none. */
export function readElement(source: NumberSource, start: number, limit: number): Element | undefined {
  const id = readVarInt(source, start, limit, 4);
  const size = id && readVarInt(source, id.end, limit, 8);
  if (id === undefined || size === undefined) return undefined;
  const isUnknown = size.value === 2 ** (7 * (size.end - id.end)) - 1;
  const marker = 2 ** (7 * (id.end - start));
  return { id: marker + id.value, body: size.end, end: isUnknown ? Infinity : size.end + size.value };
}

/** Reads a variable-size integer (§4), without its marker; undefined if it is longer than allowed or cut off. */
export function readVarInt(source: NumberSource, start: number, limit: number, maxLength: number) {
  if (start >= limit) return undefined;
  const first = source.u8(start);
  const end = start + Math.clz32(first) - 23;
  if (end - start > maxLength || end > limit) return undefined;
  let value = first & (0xff >> (end - start));
  for (let at = start + 1; at < end; at++) value = value * 256 + source.u8(at);
  return { value, end };
}

/** Returns the element at `at`. @throws ServiceError `upstream_invalid` if there is none, or it ends after `limit`. */
export function elementAt(source: NumberSource, at: number, limit: number): Element {
  const element = readElement(source, at, limit);
  if (element === undefined) throw damagedMatroskaError(`there is no element at ${at}`);
  if (element.end <= limit || element.end === Infinity) return element;
  throw damagedMatroskaError(`the element at ${at} ends at ${element.end}, after ${limit}`);
}

/** Yields the elements of `parent`, in order. @throws ServiceError as `elementAt`. */
export function* elementsIn(source: NumberSource, { body, end }: Pick<Element, "body" | "end">): Generator<Element> {
  const limit = Math.min(end, source.size);
  for (let at = body; at < limit;) {
    const element = elementAt(source, at, limit);
    yield element;
    at = element.end;
  }
}

/** Returns the children of `parent` with this id, in order. @throws ServiceError as `elementAt`, when they are asked for. */
export function childrenOf(source: NumberSource, parent: Pick<Element, "body" | "end">, id: number) {
  return elementsIn(source, parent).filter((child) => child.id === id);
}

/** Returns the first child of `parent` with the first id, the first one of that with the second …; undefined if there is none. */
export function findElement(source: NumberSource, parent: Element, ...path: readonly number[]): Element | undefined {
  return path.reduce<Element | undefined>((found, id) => found && childrenOf(source, found, id).next().value, parent);
}

/** Returns the unsigned integer (RFC 8794 §7.2) that an element is; 0 if it is longer than 8 bytes. */
export function unsignedIn(source: NumberSource, { body, end }: Element): number {
  let value = 0;
  if (end - body > 8) return 0;
  for (let at = body; at < end; at++) value = value * 256 + source.u8(at);
  return value;
}

/** Returns the unsigned integer that the element is which `findElement` finds; undefined if there is none. */
export function findUnsigned(source: NumberSource, parent: Element, ...path: readonly number[]): number | undefined {
  const found = findElement(source, parent, ...path);
  return found && unsignedIn(source, found);
}

/** Returns the value of a float element (§7.3); 0 if it has neither 4 nor 8 bytes. */
export function floatIn(source: NumberSource, { body, end }: Element): number {
  if (end - body !== 4 && end - body !== 8) return 0;
  const bytes = Buffer.from(Array.from({ length: end - body }, (_, at) => source.u8(body + at)));
  return bytes.length === 4 ? bytes.readFloatBE() : bytes.readDoubleBE();
}

/** Returns the signed integer (§7.1) that an element is; 0 if it is longer than 8 bytes. */
export function signedIn(source: NumberSource, element: Element): number {
  const { body, end } = element;
  const value = unsignedIn(source, element);
  const isNegative = end > body && end - body <= 8 && source.u8(body) >= 128;
  return isNegative ? value - 2 ** (8 * (end - body)) : value;
}

const maxTextLength = 500;

/** Returns the text that an element is, at most 500 bytes of it. */
export function textIn(source: NumberSource, { body, end }: Element): string {
  const bytes = Buffer.alloc(Math.min(maxTextLength, end - body));
  for (let i = 0; i < bytes.length; i++) bytes[i] = source.u8(body + i);
  return bytes.toString("utf8").replace(/\0.*$/s, "");
}

const maxBytes = 256 << 20;

/** Returns the bytes of an element or block. @throws ServiceError `upstream_invalid` for more than 256 MiB. */
export function readBytes(fd: number, { body, end }: Pick<Element, "body" | "end">): Uint8Array {
  if (end - body <= maxBytes) return readFully(fd, Buffer.allocUnsafe(end - body), body);
  throw damagedMatroskaError(`an element has ${end - body} bytes, the limit is ${maxBytes}`);
}

/** Returns the head of a Void element (RFC 8794 §11.3.2) that takes the place of a span; empty for a single byte. */
export function voidHead({ start, end }: ByteSpan): Uint8Array {
  const [voidId, longest] = [ids.void, 9];
  const length = end - start;
  if (length < 2) return new Uint8Array();
  if (length < longest) return Uint8Array.of(voidId, 0x80 + length - 2);
  const head = Buffer.alloc(longest);
  head.writeUInt16BE((voidId << 8) + 1);
  head.writeUIntBE(length - longest, 3, 6);
  return head;
}

/** Returns an `upstream_invalid` error for a Matroska or WebM file that cannot be read. */
export function damagedMatroskaError(what: string): ServiceError {
  return new ServiceError("upstream_invalid", `the Matroska file cannot be read: ${what}`);
}
