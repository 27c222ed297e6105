/** Of all Opus, whatever it was made from (RFC 7845 §4). */
export const opusRate = 48_000;

/** Returns how many samples a packet of Opus has, by its first bytes (RFC 6716 §3.1). */
export function opusSamples(packet: Uint8Array): number {
  const [first = 0, second = 0] = packet;
  const config = first >> 3;
  const frameMs =
    config < 12 ? [10, 20, 40, 60][config % 4]! : config < 16 ? [10, 20][config % 2]! : [2.5, 5, 10, 20][config % 4]!;
  const code = first & 3;
  const frames = packet.length === 0 ? 0 : code === 0 ? 1 : code < 3 ? 2 : second & 0x3f;
  return (frames * frameMs * opusRate) / 1000;
}
