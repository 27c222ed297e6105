import { createDecipheriv } from "node:crypto";
import { ServiceError } from "../model/errors.ts";
import { crc32 } from "./codecs/checksums.ts";
import { createPacketReader, packetLength } from "./mpeg-ts/packets.ts";
import { associationPid, pidOf } from "./mpeg-ts/pids.ts";
import { checksumStart, readAssociations, readProgramMap } from "./mpeg-ts/tables.ts";
import { skipId3Tags } from "./packed-audio/tags.ts";
import { sniffContainer } from "./sniff.ts";
import { adts } from "./codecs/adts.ts";
import { syncframeSizeAt } from "./codecs/dolby.ts";
import { startCode, trimZeros, unescapeNal } from "./nal/nal-units.ts";

/** What an encrypted stream_type is of which stream, and how it is decrypted (MPEG-2 Stream Encryption Format for HLS). */
const encryptedTypes: ReadonlyMap<number, { clearType: number; decrypt: StreamDecryption }> = new Map([
  [0xdb, { clearType: 0x1b, decrypt: decryptAvc }],
  [0xcf, { clearType: 0x0f, decrypt: decryptAdts }],
  [0xc1, { clearType: 0x81, decrypt: decryptDolby }],
  [0xc2, { clearType: 0x87, decrypt: decryptDolby }],
]);

/**
 * Returns a copy of a segment of MPEG-TS or packed audio, whose samples are decrypted (SAMPLE-AES); any other segment as it is.
 * @throws ServiceError `upstream_invalid` if it begins within a sample.
 */
export function decryptSamples(segment: Uint8Array, key: SampleKey): Uint8Array {
  const container = sniffContainer(segment);
  if (container !== "mpeg-ts" && container !== "packed-audio") return segment;
  const bytes = Buffer.from(segment);
  if (container === "mpeg-ts") decryptTransportStream(bytes, key);
  else {
    const audio = bytes.subarray(skipId3Tags(bytes).start);
    const decrypt = audio[0] === 0x0b ? decryptDolby : decryptAdts;
    decrypt(audio, key);
  }
  return bytes;
}

interface EncryptedStream {
  decrypt: StreamDecryption;
  /** Where it is in the segment. */
  pieces: { from: number; to: number }[];
  /** Bytes left of the header of a PES packet. */
  headerLeft: number;
  /** Its last packet; `null`: none yet. */
  latest: Buffer | null;
}

function decryptTransportStream(segment: Buffer, key: SampleKey): void {
  const mapPids = new Set<number>();
  const streams = new Map<number, EncryptedStream>();
  const packets = createPacketReader((bytes, at) => {
    const pid = pidOf(bytes, at);
    const payload = payloadAt(bytes, at);
    if (payload === null) return;
    const section = payload.isStart ? sectionIn(bytes, payload) : null;
    if (pid === associationPid && section !== null) {
      for (const { pid: found } of readAssociations(section) ?? []) mapPids.add(found);
    } else if (mapPids.has(pid) && section !== null) openStreams(section, streams);
    const stream = streams.get(pid);
    if (stream !== undefined) addPayload(stream, bytes, at, payload);
  });
  packets.read(segment);
  for (const { pieces, decrypt } of streams.values()) {
    const stream = Buffer.concat(pieces.map(({ from, to }) => segment.subarray(from, to)));
    decrypt(stream, key);
    let at = 0;
    for (const { from, to } of pieces) at += stream.copy(segment, from, at, at + to - from);
  }
}

interface Payload {
  from: number;
  to: number;
  /** payload_unit_start_indicator */
  isStart: boolean;
}

/** Returns where the payload of the packet at `at` is; `null`: it has none. */
function payloadAt(bytes: Buffer, at: number): Payload | null {
  const control = bytes[at + 3] ?? 0;
  if ((control & 0x10) === 0) return null;
  const from = at + 4 + (control & 0x20 ? 1 + (bytes[at + 4] ?? 0) : 0);
  const to = at + packetLength;
  return from < to ? { from, to, isStart: ((bytes[at + 1] ?? 0) & 0x40) !== 0 } : null;
}

/** Returns the section of a table that begins and ends in a packet; `null`: it continues in the next one, or is none. */
function sectionIn(bytes: Buffer, { from, to }: Payload): Buffer | null {
  const start = from + 1 + (bytes[from] ?? 0);
  const end = start + 3 + (start + 3 <= to ? bytes.readUInt16BE(start + 1) & 0x0fff : to);
  if (end > to) return null;
  const section = bytes.subarray(start, end);
  return crc32(section, checksumStart) === 0 ? section : null;
}

const checksumBytes = 4;

/** Takes the encrypted streams of a program map, which names them as clear ones from then on. */
function openStreams(section: Buffer, streams: Map<number, EncryptedStream>): void {
  for (const { pid, streamType, at } of readProgramMap(section) ?? []) {
    const type = encryptedTypes.get(streamType);
    if (type === undefined) continue;
    section[at] = type.clearType;
    if (!streams.has(pid)) streams.set(pid, { decrypt: type.decrypt, pieces: [], headerLeft: 0, latest: null });
  }
  const end = section.length - checksumBytes;
  section.writeUInt32BE(crc32(section.subarray(0, end), checksumStart) >>> 0, end);
}

const pesHeaderBytes = 9;

function addPayload(stream: EncryptedStream, bytes: Buffer, at: number, { from, to, isStart }: Payload): void {
  const packet = bytes.subarray(at, at + packetLength);
  if (stream.latest?.equals(packet) === true) {
    // It was sent twice: packets of this PID have nothing.
    packet.writeUInt16BE(0x1fff, 1);
    return;
  }
  stream.latest = packet;
  if (isStart) stream.headerLeft = pesHeaderBytes + (bytes[from + pesHeaderBytes - 1] ?? 0);
  else if (stream.pieces.length === 0 && stream.headerLeft === 0) throw withinSampleError();
  const start = Math.min(to, from + stream.headerLeft);
  stream.headerLeft -= start - from;
  if (start < to) stream.pieces.push({ from: start, to });
}

function withinSampleError(): ServiceError {
  return new ServiceError("upstream_invalid", "a segment whose samples are encrypted begins within one of them");
}

/** AES-128 in CBC mode, which begins again in each frame or NAL unit. */
interface SampleKey {
  key: Uint8Array;
  iv: Uint8Array;
}

/** Decrypts all frames or NAL units of an elementary stream in place. */
type StreamDecryption = (stream: Buffer, key: SampleKey) => void;

const blockBytes = 16;
/** Bytes that are clear at the start of a NAL unit, and of a frame after its header. */
const clearNalBytes = 32;
const clearFrameBytes = 16;
/** Longest NAL unit that is clear as a whole, bytes. */
const clearUnitBytes = 48;
/** One in ten blocks of a NAL unit is encrypted. */
const nalStep = 10 * blockBytes;
const slice = 1;
const idr = 5;

/**
 * Decrypts H.264: one in ten blocks of slices that are longer than 48 bytes. Encryption added emulation prevention bytes once more; in
 * their place, zeros follow the unit, which belong to the next start code.
 */
function decryptAvc(stream: Buffer, key: SampleKey): void {
  for (let at = stream.indexOf(startCode); at >= 0;) {
    const start = at + startCode.length;
    at = stream.indexOf(startCode, start);
    const end = trimZeros(stream, start, at < 0 ? stream.length : at);
    const unitType = (stream[start] ?? 0) & 0x1f;
    if ((unitType !== slice && unitType !== idr) || end - start <= clearUnitBytes) continue;
    const unit = unescapeNal(stream.subarray(start, end));
    decryptBlocks(unit, { from: clearNalBytes, step: nalStep, leastBytes: blockBytes + 1 }, key);
    unit.copy(stream, start);
    stream.fill(0, start + unit.length, end);
  }
}

/** Decrypts AAC in ADTS: all whole blocks of a frame after its header and 16 more bytes. */
function decryptAdts(stream: Buffer, key: SampleKey): void {
  decryptFrames(stream, key, adts.firstByte, (at) => adts.frameAt(stream, at, true));
}

/** Decrypts AC-3 and E-AC-3: all whole blocks of a syncframe after its first 16 bytes. */
function decryptDolby(stream: Buffer, key: SampleKey): void {
  const first = 0x0b;
  decryptFrames(stream, key, first, (at) => {
    const size = syncframeSizeAt(stream, at);
    return size === null ? null : { size, headerSize: 0 };
  });
}

type FrameAt = (at: number) => { size: number; headerSize: number } | "incomplete" | null;

function decryptFrames(stream: Buffer, key: SampleKey, firstByte: number, frameAt: FrameAt): void {
  for (let at = 0; at >= 0 && at < stream.length;) {
    const frame = frameAt(at);
    if (frame === null || frame === "incomplete") {
      at = stream.indexOf(firstByte, at + 1);
      continue;
    }
    const bytes = stream.subarray(at, at + frame.size);
    const from = frame.headerSize + clearFrameBytes;
    if (bytes.length === frame.size) decryptBlocks(bytes, { from, step: blockBytes, leastBytes: blockBytes }, key);
    at += frame.size;
  }
}

interface BlockPattern {
  /** Where the first encrypted block begins. */
  from: number;
  /** From one encrypted block to the next. */
  step: number;
  /** A block is encrypted only if this many bytes are left. */
  leastBytes: number;
}

function decryptBlocks(bytes: Buffer, { from, step, leastBytes }: BlockPattern, { key, iv }: SampleKey): void {
  const starts: number[] = [];
  for (let at = from; bytes.length - at >= leastBytes; at += step) starts.push(at);
  if (starts.length === 0) return;
  const encrypted = Buffer.concat(starts.map((at) => bytes.subarray(at, at + blockBytes)));
  const plain = createDecipheriv("aes-128-cbc", key, iv).setAutoPadding(false).update(encrypted);
  for (const [i, at] of starts.entries()) plain.copy(bytes, at, i * blockBytes, (i + 1) * blockBytes);
}
