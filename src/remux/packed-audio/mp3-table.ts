import { frameIn, isFrame } from "../codecs/audio-syntax.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { createFileWindow, readAt, type ReadFile } from "../open-file.ts";
import type { TrackDetails } from "../track-details.ts";
import { endOfTags, id3Length } from "./tags.ts";

/** What every decoder adds at the start, which encoders do not count (LAME tag, "Encoder delays"). */
export const decoderDelay = 529;

/** What the first frame of an MP3 file has instead of audio (https://gabriel.mp3-tech.org/mp3infotag.html, or Fraunhofer's VBRI). */
interface Mp3Table {
  frameBytes: number;
  /** Of the file, from its frame on; `null`: it does not say. */
  fileBytes: number | null;
  /** What decoders leave out, seconds; `null`: it does not say. */
  trims: { startS: number; endS: number } | null;
}

/** Names after which decoders believe the delays. */
const encoders: ReadonlySet<string> = new Set(["LAME", "Lavf", "Lavc"]);
const maxTableEnd = 36 + 4 + 4 + 4 + 4 + 100 + 4 + 24;
const vbriAt = 36;

/** Returns where the table would be in a frame with this header, which may be that of Xing or of LAME. */
export function mp3TableAt([, b1 = 0, , b3 = 0]: Uint8Array): number {
  const isFirstVersion = ((b1 >> 3) & 3) === 3;
  const isMono = b3 >> 6 === 3;
  return 4 + (isFirstVersion ? (isMono ? 17 : 32) : isMono ? 9 : 17);
}

/** Returns the table of the frame at `at`; `null` if none is there, or it has audio. */
export function readMp3Table(bytes: Uint8Array, at: number): Mp3Table | null {
  const frame = frameIn(mpegAudio, bytes, at);
  if (frame === null) return null;
  const head = Buffer.from(bytes.subarray(at, at + Math.min(frame.size, maxTableEnd)));
  const textAt = (from: number) => head.toString("latin1", from, from + 4);
  const numberAt = (from: number) => (from + 4 <= head.length ? head.readUInt32BE(from) : null);
  const frameBytes = frame.size;
  if (textAt(vbriAt) === "VBRI") return { frameBytes, fileBytes: numberAt(vbriAt + 10), trims: null };
  const start = mp3TableAt(head);
  if (textAt(start) !== "Xing" && textAt(start) !== "Info") return null;
  const flags = numberAt(start + 4) ?? 0;
  const has = (flag: number) => (flags & flag) !== 0;
  const bytesAt = start + 8 + (has(1) ? 4 : 0);
  const encoderAt = bytesAt + (has(2) ? 4 : 0) + (has(4) ? 100 : 0) + (has(8) ? 4 : 0);
  const isTrusted = encoders.has(textAt(encoderAt)) && encoderAt + 24 <= head.length;
  const delays = isTrusted ? head.readUIntBE(encoderAt + 21, 3) : null;
  return {
    frameBytes,
    fileBytes: has(2) ? numberAt(bytesAt) : null,
    trims: delays === null ? null : trimsOf(delays, frame.sampleRate),
  };
}

function trimsOf(delays: number, sampleRate: number): Mp3Table["trims"] {
  const [start, end] = [(delays >> 12) + decoderDelay, Math.max(0, (delays & 0xfff) - decoderDelay)];
  return { startS: start / sampleRate, endS: end / sampleRate };
}

interface Mp3FileTable extends Mp3Table {
  /** Other frames follow what it is a table of, as in files that were put together: it does not say when the file ends. */
  isOfPart: boolean;
}

/** Returns the table of a file; `null` if it has none, or is no MP3. */
export function readMp3TableOf(file: ReadFile): Mp3FileTable | null {
  let start = 0;
  for (let length = -1; length !== 0; start += length) length = id3Length(readAt(file, start, 10), 0);
  const table = readMp3Table(readAt(file, start, maxTableEnd), 0);
  return table && { ...table, isOfPart: hasMoreFrames(file, start, table) };
}

/** Some encoders do not count the first frame: a last one as long may follow the others. */
function hasMoreFrames(file: ReadFile, start: number, { fileBytes, frameBytes }: Mp3Table): boolean {
  if (fileBytes === null) return false;
  const end = start + fileBytes;
  const rest = createFileWindow(file);
  const hasMore = end < file.size && endOfTags(rest, end + frameBytes) < file.size;
  return hasMore && isFrame(mpegAudio, rest.at(endOfTags(rest, end)), 0);
}

/** Returns what an MP3 file says of its audio; undefined if it says nothing. */
export function readMp3Details(file: ReadFile): TrackDetails | undefined {
  const { trims = null, isOfPart = false } = readMp3TableOf(file) ?? {};
  if (trims === null) return undefined;
  const { startS: delayS } = trims;
  const paddingS = isOfPart ? 0 : trims.endS;
  return { kind: "audio", language: null, name: "", delayS, paddingS, timedPaddingS: paddingS };
}
