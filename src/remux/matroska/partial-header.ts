import { avcCodec } from "../codec-name.ts";
import { type Element, floatIn, ids, readElement, textIn, unsignedIn } from "./elements.ts";
import { type FileHeader, roundNumber } from "../media-summary.ts";
import { numbersIn, type NumberSource } from "../mp4/read/number-source.ts";

const videoType = 1;
const audioType = 2;
const maxFrameRate = 1_000;
const maxTracks = 100;

/**
 * Reads the header of a WebM or Matroska file, as far as its first bytes have it. Takes time linear
 * in the number of bytes; never throws.
 */
export function readMatroskaHeader(start: Uint8Array): FileHeader {
  const source = numbersIn(start);
  const top = childrenOf(source, { body: 0, end: start.length });
  const segment = childrenOf(source, top.get(ids.segment));
  const info = childrenOf(source, segment.get(ids.info));
  const tracks = segment.get(ids.tracks);
  const entries = tracks === undefined ? [] : readElements(source, tracks);
  const ofType = (type: number) =>
    entries
      .filter(({ id }) => id === ids.trackEntry)
      .slice(0, maxTracks)
      .map((entry) => childrenOf(source, entry))
      .find((entry) => readUnsigned(source, entry.get(ids.trackType)) === type);
  const video = ofType(videoType);
  const audio = ofType(audioType);
  const missing = (video ?? audio) !== undefined && tracks?.isCut === false ? "none" : null;
  const nanoseconds = readUnsigned(source, video?.get(ids.defaultDuration)) ?? 0;
  const fps = roundNumber(1e9 / nanoseconds);
  const scale = readUnsigned(source, info.get(ids.timestampScale)) ?? 1_000_000;
  const duration = info.get(ids.duration);
  const ticks = duration === undefined || duration.isCut ? 0 : floatIn(source, duration);
  const docType = childrenOf(source, top.get(ids.ebml)).get(ids.docType);
  return {
    container: docType !== undefined && textIn(source, docType) === "webm" ? "webm" : "matroska",
    duration: roundNumber((ticks * scale) / 1e9),
    ...sizeOf(source, childrenOf(source, video?.get(ids.video))),
    fps: fps !== null && fps <= maxFrameRate ? fps : null,
    vcodec: video === undefined ? missing : codecOf(start, video),
    acodec: audio === undefined ? missing : codecOf(start, audio),
  };
}

type Children = ReadonlyMap<number, PartialElement>;

/** Returns the first child of each kind. */
function childrenOf(source: NumberSource, parent: Pick<Element, "body" | "end"> | undefined): Children {
  const found = parent === undefined ? [] : readElements(source, parent);
  return new Map(found.toReversed().map((element) => [element.id, element]));
}

/** Returns the displayed size if it is in pixels (DisplayUnit 0, its default), else the coded one. */
function sizeOf(source: NumberSource, video: Children): Pick<FileHeader, "width" | "height"> {
  const isInPixels = readUnsigned(source, video.get(ids.displayUnit)) === null;
  const width = isInPixels ? readUnsigned(source, video.get(ids.displayWidth)) : null;
  const height = isInPixels ? readUnsigned(source, video.get(ids.displayHeight)) : null;
  return {
    width: width ?? readUnsigned(source, video.get(ids.pixelWidth)),
    height: height ?? readUnsigned(source, video.get(ids.pixelHeight)),
  };
}

function readUnsigned(source: NumberSource, element: PartialElement | undefined): number | null {
  return element === undefined || element.isCut ? null : unsignedIn(source, element) || null;
}

/** Returns the name of the codec that RFC 6381 lists use; `null` for one that has none. */
function codecOf(bytes: Uint8Array, entry: Children): string | null {
  const id = entry.get(ids.codecId);
  const codec = (id && codecs.get(textIn(numbersIn(bytes), id))) ?? null;
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

interface PartialElement extends Element {
  /** Its content is cut off, or its size unknown; it ends where the bytes do. */
  isCut: boolean;
}

/** Of one element; a header has dozens. */
const maxElements = 1_000;

/** Returns the first 1,000 elements in `parent`; what comes after a damaged one is left out. */
function readElements(source: NumberSource, { body, end }: Pick<Element, "body" | "end">): PartialElement[] {
  const found: PartialElement[] = [];
  for (let at = body; at < end && found.length < maxElements;) {
    const element = readElement(source, at, end);
    if (element === undefined) break;
    found.push({ ...element, end: Math.min(element.end, end), isCut: element.end > end });
    at = element.end;
  }
  return found;
}
