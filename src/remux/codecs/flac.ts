/**
 * Reads the header of a frame of FLAC (RFC 9639 §9.1): how many samples it has, and there are to its end; `null` if it has none.
 *
 * @param blockSize Of a stream whose blocks have one size.
 */
export function readFrameHeader(frame: Buffer, blockSize: number): { samples: number; end: number } | null {
  if (frame.length < 8 || frame.readUInt16BE(0) >> 1 !== syncCode) return null;
  const code = frame[2]! >> 4;
  const first = frame[4]!;
  const length = first < 0x80 ? 1 : Math.clz32(~(first << 24));
  if (code === 0 || length > 7) return null;
  let number = length === 1 ? first : first & (0x7f >> length);
  for (let i = 1; i < length; i++) number = number * 64 + ((frame[4 + i] ?? 0) & 0x3f);
  const at = 4 + length;
  const [byte = 0, next = 0] = frame.subarray(at);
  const samples = code === 6 ? byte + 1 : code === 7 ? byte * 256 + next + 1 : sizeOf(code);
  const isVariable = (frame[1]! & 1) === 1;
  return { samples, end: (isVariable ? number : number * blockSize) + samples };
}

const syncCode = 0x7ffc;

/** Block sizes by code (RFC 9639 §9.1.1). */
function sizeOf(code: number): number {
  if (code === 1) return 192;
  return code < 6 ? 144 << code : 1 << code;
}
