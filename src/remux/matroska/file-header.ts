import { avcCodec } from "../codec-name.ts";
import { type Element, ebmlId, readElement } from "../ebml.ts";
import { type FileHeader, roundNumber } from "../media-summary.ts";
import { numbersIn } from "../mp4/read/number-source.ts";
import { ids } from "./elements.ts";

const videoType = 1;
const audioType = 2;
const maxFrameRate = 1_000;
const maxTracks = 100;

/**
 * Reads the header of a WebM or Matroska file, as far as its first bytes have it. Takes time linear
 * in the number of bytes; never throws.
 */
export function readMatroskaHeader(start: Uint8Array): FileHeader {
  const bytes = Buffer.from(start.buffer, start.byteOffset, start.length);
  const top = childrenOf(bytes, { body: 0, end: bytes.length });
  const segment = childrenOf(bytes, top.get(ids.segment));
  const info = childrenOf(bytes, segment.get(ids.info));
  const tracks = segment.get(ids.tracks);
  const entries = tracks === undefined ? [] : readElements(bytes, tracks);
  const ofType = (type: number) =>
    entries
      .filter(({ id }) => id === ids.trackEntry)
      .slice(0, maxTracks)
      .map((entry) => childrenOf(bytes, entry))
      .find((entry) => readUnsigned(bytes, entry.get(ids.trackType)) === type);
  const video = ofType(videoType);
  const audio = ofType(audioType);
  const missing = (video ?? audio) !== undefined && tracks?.isCut === false ? "none" : null;
  const nanoseconds = readUnsigned(bytes, video?.get(ids.defaultDuration)) ?? 0;
  const fps = roundNumber(1e9 / nanoseconds);
  const scale = readUnsigned(bytes, info.get(ids.timestampScale)) ?? 1_000_000;
  const docType = readText(bytes, childrenOf(bytes, top.get(ebmlId)).get(ids.docType));
  return {
    container: docType === "webm" ? "webm" : "matroska",
    duration: roundNumber((readFloat(bytes, info.get(ids.duration)) * scale) / 1e9),
    ...sizeOf(bytes, childrenOf(bytes, video?.get(ids.video))),
    fps: fps !== null && fps <= maxFrameRate ? fps : null,
    vcodec: video === undefined ? missing : codecOf(bytes, video),
    acodec: audio === undefined ? missing : codecOf(bytes, audio),
  };
}

type Children = ReadonlyMap<number, HeaderElement>;

/** Returns the first child of each kind. */
function childrenOf(bytes: Buffer, parent: Pick<Element, "body" | "end"> | undefined): Children {
  const found = parent === undefined ? [] : readElements(bytes, parent);
  return new Map(found.toReversed().map((element) => [element.id, element]));
}

/** Returns the displayed size if it is in pixels (DisplayUnit 0, its default), else the coded one. */
function sizeOf(bytes: Buffer, video: Children): Pick<FileHeader, "width" | "height"> {
  const isInPixels = readUnsigned(bytes, video.get(ids.displayUnit)) === null;
  const width = isInPixels ? readUnsigned(bytes, video.get(ids.displayWidth)) : null;
  const height = isInPixels ? readUnsigned(bytes, video.get(ids.displayHeight)) : null;
  return {
    width: width ?? readUnsigned(bytes, video.get(ids.pixelWidth)),
    height: height ?? readUnsigned(bytes, video.get(ids.pixelHeight)),
  };
}

function readUnsigned(bytes: Buffer, element: HeaderElement | undefined): number | null {
  if (element === undefined || element.isCut) return null;
  const length = element.end - element.body;
  return length < 1 || length > 6 ? null : bytes.readUIntBE(element.body, length) || null;
}

function readFloat(bytes: Buffer, element: HeaderElement | undefined): number {
  if (element === undefined || element.isCut) return 0;
  const length = element.end - element.body;
  if (length === 8) return bytes.readDoubleBE(element.body);
  return length === 4 ? bytes.readFloatBE(element.body) : 0;
}

const maxTextLength = 100;

function readText(bytes: Buffer, element: HeaderElement | undefined): string {
  if (element === undefined) return "";
  const end = Math.min(element.end, element.body + maxTextLength);
  return bytes.toString("latin1", element.body, end).replace(/\0.*$/s, "");
}

/** Returns the name of the codec that RFC 6381 lists use; `null` for one that has none. */
function codecOf(bytes: Buffer, entry: Children): string | null {
  const codec = codecs.get(readText(bytes, entry.get(ids.codecId))) ?? null;
  const setup = entry.get(ids.codecPrivate);
  if (codec !== "avc1" || setup === undefined) return codec;
  return avcCodec(codec, bytes.subarray(setup.body, setup.end));
}

/** By CodecID (RFC 9559 §27.2 and the Matroska codec registry). */
const codecs: ReadonlyMap<string, string> = new Map([
  ["V_VP8", "vp8"],
  ["V_VP9", "vp9"],
  ["V_AV1", "av01"],
  ["V_MPEG4/ISO/AVC", "avc1"],
  ["V_MPEGH/ISO/HEVC", "hvc1"],
  ["A_OPUS", "opus"],
  ["A_VORBIS", "vorbis"],
  ["A_AAC", "mp4a.40.2"],
  ["A_AC3", "ac-3"],
  ["A_EAC3", "ec-3"],
  ["A_MPEG/L3", "mp3"],
  ["A_FLAC", "flac"],
]);

interface HeaderElement extends Element {
  /** Its content is cut off, or its size unknown; it ends where the buffer does. */
  isCut: boolean;
}

/** Of one element; a header has dozens. */
const maxElements = 1_000;

/** Returns the first 1,000 elements in `parent`; what comes after a damaged one is left out. */
function readElements(bytes: Buffer, { body, end }: Pick<Element, "body" | "end">): HeaderElement[] {
  const source = numbersIn(bytes);
  const found: HeaderElement[] = [];
  for (let at = body; at < end && found.length < maxElements;) {
    const element = readElement(source, at, end);
    if (element === undefined) break;
    found.push({ ...element, end: Math.min(element.end, end), isCut: element.end > end });
    at = element.end;
  }
  return found;
}
