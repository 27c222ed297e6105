import { avcType, avcTypeOf } from "../nal/avc-sps.ts";
import { setsIn } from "../nal/avc-slices.ts";
import { lengthBytesOf, nalUnits } from "../nal/nal-units.ts";

/** Types of NAL units of HEVC (ISO/IEC 23008-2 §7.4.2.2). */
const hevcUnit = { lastVcl: 31, vps: 32, sps: 33, pps: 34, delimiter: 35 };
/** access_unit_delimiter_rbsp of H.264 (ISO/IEC 14496-10 table 7-1). */
const avcDelimiter = 9;

export const hevcType = (unit: Buffer): number => (unit.readUInt8(0) >> 1) & 0x3f;

/** Returns the content of the configuration in a sample entry; `null`: it has none of this type. */
export function configurationOf(sampleEntry: Uint8Array, type: string): Buffer | null {
  const entry = Buffer.from(sampleEntry.buffer, sampleEntry.byteOffset, sampleEntry.length);
  const found = entry.indexOf(type, 86, "latin1");
  return found < 0 ? null : entry.subarray(found + 4);
}

/** Adds the parameter sets of a sample entry to a sample. */
export type AddSets = (sample: Uint8Array) => Uint8Array;

/**
 * Returns a function that adds the parameter sets of this sample entry to a sample, before its first unit that is not a delimiter, unless it has some. For a format that comes
 * after another one: many players (Chromium) read only the first sample entry of a track. Once a sample has sets that the entry has not, those after it stay as they are: the
 * entry may be outdated. `null`: the codec is neither H.264 nor HEVC.
 */
export function setsOf(sampleEntry: Uint8Array): AddSets | null {
  const avc = configurationOf(sampleEntry, "avcC");
  if (avc !== null) {
    const kinds = { sets: [avcType.sps, avcType.pps], delimiter: avcDelimiter, lastVcl: avcType.idr };
    return adderOf([...setsIn(avc)], lengthBytesOf(avc, 4), avcTypeOf, kinds);
  }
  const hevc = configurationOf(sampleEntry, "hvcC");
  if (hevc === null) return null;
  const { vps, sps, pps, ...others } = hevcUnit;
  return adderOf([...hevcSetsIn(hevc)], lengthBytesOf(hevc, 21), hevcType, { sets: [vps, sps, pps], ...others });
}

/** Yields the units in the arrays of an `hvcC` (ISO/IEC 14496-15 §8.3.3.1), as far as they are whole. */
function* hevcSetsIn(configuration: Buffer): Generator<Buffer> {
  let at = 23;
  for (let arrays = configuration[22] ?? 0; arrays > 0 && at + 3 <= configuration.length; arrays--) {
    let count = configuration.readUInt16BE(at + 1);
    at += 3;
    for (; count > 0 && at + 2 <= configuration.length; count--) {
      const end = at + 2 + configuration.readUInt16BE(at);
      if (end > at + 2) yield configuration.subarray(at + 2, end);
      at = end;
    }
  }
}

interface UnitKinds {
  /** Types of parameter sets. */
  sets: readonly number[];
  delimiter: number;
  /** Types up to this one are slices. */
  lastVcl: number;
}

function adderOf(
  all: readonly Buffer[],
  lengthBytes: number,
  typeOf: (unit: Buffer) => number,
  { sets, delimiter, lastVcl }: UnitKinds,
): AddSets {
  const units = all.filter((unit) => sets.includes(typeOf(unit)) && unit.length < 2 ** (8 * lengthBytes));
  const added = units.flatMap((unit) => {
    const length = Buffer.alloc(lengthBytes);
    length.writeUIntBE(unit.length, 0, lengthBytes);
    return [length, unit];
  });
  let isOutdated = false;
  return (sample) => {
    let at = 0;
    let hasOwn = false;
    for (const unit of nalUnits(sample, lengthBytes)) {
      const type = typeOf(unit);
      if (sets.includes(type)) {
        hasOwn = true;
        isOutdated ||= !units.some((known) => known.equals(unit));
      } else if (type === delimiter && at === 0) at = lengthBytes + unit.length;
      else if (type <= lastVcl) break;
    }
    if (hasOwn || isOutdated) return sample;
    return Buffer.concat([sample.subarray(0, at), ...added, sample.subarray(at)]);
  };
}
