import { ServiceError } from "../../model/errors.ts";
import { crc32 } from "../codecs/checksums.ts";
import { createPacketReader, packetLength } from "../mpeg-ts/packets.ts";
import { associationPid, pidOf } from "../mpeg-ts/pids.ts";
import { checksumStart, readAssociations, readProgramMap } from "../mpeg-ts/tables.ts";
import { skipId3Tags } from "../packed-audio/tags.ts";
import { sniffContainer } from "../sniff.ts";
import { decryptAdts, decryptAvc, decryptDolby, type SampleKey, type StreamDecryption } from "./blocks.ts";

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

/** The payload of one encrypted stream. */
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
      for (const found of readAssociations(section) ?? []) mapPids.add(found);
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

/** Returns the section of a table that begins and ends in a packet; `null`: it goes on in the next one, or is none. */
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
