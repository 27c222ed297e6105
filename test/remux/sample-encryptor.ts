import { createCipheriv } from "node:crypto";

export const key = { key: Buffer.from("0123456789abcdef"), iv: Buffer.alloc(16, 7) };

/** Encrypts blocks in place, of 16 bytes each. */
export function encryptBlocks(bytes: Buffer, starts: readonly number[]): Buffer {
  const cipher = createCipheriv("aes-128-cbc", key.key, key.iv).setAutoPadding(false);
  for (const at of starts) cipher.update(bytes.subarray(at, at + 16)).copy(bytes, at);
  return bytes;
}

/** Encrypts AAC in place, in frames of `size` bytes: all whole blocks after a header of 7 bytes and 16 more. */
export function encryptFrames(frames: Buffer, size: number): Buffer {
  for (let at = 0; at < frames.length; at += size) {
    const count = Math.floor((size - 23) / 16);
    encryptBlocks(
      frames.subarray(at, at + size),
      Array.from({ length: count }, (_, i) => 23 + 16 * i),
    );
  }
  return frames;
}
