const idBytes = 30;

/**
 * Creates a counter of the samples that packets of Vorbis have (Vorbis I §4.3.8): a quarter of the sizes of two blocks that overlap.
 * Returns undefined if its headers are damaged.
 */
export function createVorbisCounter(id: Buffer, setup: Buffer) {
  if (id.length < idBytes || id.toString("latin1", 0, 7) !== "\x01vorbis") return undefined;
  if (setup.toString("latin1", 0, 7) !== "\x05vorbis") return undefined;
  const isLong = readModes(setup);
  const sampleRate = id.readUInt32LE(12);
  if (isLong.length === 0 || sampleRate === 0) return undefined;
  const sizes = id.readUInt8(28);
  const [short, long] = [1 << (sizes & 15), 1 << (sizes >> 4)];
  const modeBits = 32 - Math.clz32(isLong.length - 1);
  let before: number | undefined;
  return {
    sampleRate,
    /** Returns how many samples a packet adds: none the first one. */
    samplesIn(packet: Uint8Array): number {
      const first = packet[0] ?? 1;
      // Not audio: decoders skip it.
      if ((first & 1) !== 0) return 0;
      const size = isLong[(first >> 1) & ((1 << modeBits) - 1)] ? long : short;
      const samples = before === undefined ? 0 : (before + size) / 4;
      before = size;
      return samples;
    },
  };
}

const maxModes = 64;
/** Of a mode (§4.2.4): its block flag, two types that are 0, and a mapping. */
const modeFields = { flag: 1, types: 32, mapping: 8 };
const countBits = 6;

/**
 * Returns which modes have long blocks. They come last in the setup header (§4.2.4), before its framing bit, and after parts that
 * only a decoder can read, so they are read from the end: their number comes before them.
 */
function readModes(setup: Buffer): boolean[] {
  const bit = (at: number): number => ((setup[at >> 3] ?? 0) >> (at & 7)) & 1;
  const number = (at: number, bits: number): number => {
    let value = 0;
    for (let i = bits - 1; i >= 0; i--) value = value * 2 + bit(at + i);
    return value;
  };
  let end = setup.length * 8 - 1;
  while (end > 0 && bit(end) === 0) end--;
  const length = modeFields.flag + modeFields.types + modeFields.mapping;
  let found: boolean[] = [];
  const modes: boolean[] = [];
  for (let at = end - length; at > 56 + countBits && modes.length < maxModes; at -= length) {
    if (number(at + modeFields.flag, modeFields.types) !== 0 || number(at + length - 8, 8) >= maxModes) break;
    modes.unshift(bit(at) === 1);
    // A later match is the right one: a mode may look like a number.
    if (number(at - countBits, countBits) === modes.length - 1) found = [...modes];
  }
  return found;
}
