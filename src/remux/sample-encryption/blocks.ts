import { createDecipheriv } from "node:crypto";
import { adts } from "../codecs/adts.ts";
import { syncframeSizeAt } from "../codecs/dolby.ts";
import { startCode, trimZeros, unescapeNal } from "../nal/nal-units.ts";

/** AES-128 in CBC mode, which begins again in each frame or NAL unit. */
export interface SampleKey {
  key: Uint8Array;
  iv: Uint8Array;
}

/** Decrypts all frames or NAL units of an elementary stream in place. */
export type StreamDecryption = (stream: Buffer, key: SampleKey) => void;

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
export function decryptAvc(stream: Buffer, key: SampleKey): void {
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
export function decryptAdts(stream: Buffer, key: SampleKey): void {
  decryptFrames(stream, key, adts.firstByte, (at) => adts.frameAt(stream, at, true));
}

/** Decrypts AC-3 and E-AC-3: all whole blocks of a syncframe after its first 16 bytes. */
export function decryptDolby(stream: Buffer, key: SampleKey): void {
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
