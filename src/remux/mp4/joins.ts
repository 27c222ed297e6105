import { ServiceError } from "../../model/errors.ts";
import { avcType, avcTypeOf } from "../nal/avc-sps.ts";
import { asIdrSlice, createRenumbering, withGaps as withSequenceGaps, withGapsAllowed } from "../nal/avc-numbers.ts";
import { createAvcSlices, maxSliceHeaderBytes } from "../nal/avc-slices.ts";
import { lengthBytesOf, nalUnits } from "../nal/nal-units.ts";
import type { Sample, TrackFormat } from "../samples.ts";
import { isSameFormat, type TrackOutput } from "../track-output.ts";
import { type AddSets, configurationOf, hevcType, setsOf } from "./own-sets.ts";

/**
 * Writes video whose parts do not continue each other so that decoders can continue at each join. If a part begins within an open
 * group of pictures, pictures that are shown before its first one are left out: they need others before it. The numbers of the
 * rest are changed. Once the format has changed, samples that decoding can start with have its parameter sets too.
 */
export function createVideoJoins(output: TrackOutput) {
  let format: TrackFormat | undefined;
  /** Also media begin within an open group of pictures, as those of a live stream. */
  let isJoin = true;
  /** No sample has come since the join. */
  let isAtJoin = true;
  let isFirst = true;
  let resets = 0;
  let change = keepSample;
  let addSets: AddSets | null = null;

  /** Joins a part that begins with the sample, after a copy of it if its join is "reset"; returns whether it is. */
  function join(sample: Sample, kind: Start | null, { sampleEntry, ...others }: TrackFormat): boolean {
    const { data, dts, pts } = sample;
    change = isFirst && kind !== "reset" ? keepSample : createJoin(kind === "reset" ? kind : "start", sampleEntry);
    isFirst = false;
    if (kind !== "reset") return false;
    output.setFormat({ ...others, sampleEntry: withGaps(sampleEntry) });
    const reset = asReset(data, sampleEntry, resets++ % 2);
    output.write({ ...sample, data: reset, dts: dts - 1, pts: pts - 1, duration: 0, ...hidden });
    return true;
  }

  /** Begins a part if it begins with the sample; returns whether decoders must start with a copy of it. */
  function beginPart(sample: Sample): boolean {
    // Sources may not call the first sample a sync sample if others that follow it are shown before it.
    if (!isJoin || format === undefined || !(sample.isSync || isAtJoin)) return false;
    isAtJoin = false;
    const kind = joinOf(sample.data, format.sampleEntry);
    if (!sample.isSync && kind !== "reset") return false;
    isJoin = false;
    return join(sample, kind, format);
  }

  return {
    setFormat(next: TrackFormat): void {
      if (isSameFormat(next, format)) return;
      if (format !== undefined) addSets = setsOf(next.sampleEntry);
      format = next;
      output.setFormat(next);
    },
    /** The next sample does not continue those before. */
    begin(): void {
      isJoin = true;
      isAtJoin = true;
    },
    write(given: Sample): void {
      const sample = addSets && (given.isSync || isAtJoin) ? { ...given, data: addSets(given.data) } : given;
      const isCopied = beginPart(sample);
      const { data, isLost } = change(sample.data);
      // A reader that looks for where decoding can start has to find the copy.
      if (!isLost) output.write({ ...sample, data, ...(isCopied && { isSync: false, isJump: false }) });
    },
  };
}

const hidden = { isSync: true, isHidden: true, isJump: true };

/** Types of NAL units (ISO/IEC 23008-2 §7.4.2.2): of random access pictures, and of those that are skipped after one that starts. */
const hevc = { brokenLink: 16, firstKey: 16, cleanAccess: 21, lastKey: 23, skipped: new Set([8, 9]) };

/** How a sync sample may follow any other sample: as it is, or after one that has the same picture, and is not shown (`asReset`). */
export type Join = "start" | "reset";

/** How decoding starts with a sync sample; `alone`: only if no other sample comes before it. */
export type Start = Join | "alone";

/**
 * Returns how a decoder starts with a sync sample of this sample entry; `null`: it cannot, as the sample refers to others. Of H.264 it starts again with an IDR
 * picture (ISO/IEC 14496-10 §7.4.1.2.1): after others, pictures may be shown in the wrong order, as their numbers continue those before,
 * unless they are changed (`createJoin`).
 */
export function joinOf(sample: Uint8Array, sampleEntry: Uint8Array): Start | null {
  const configuration = configurationOf(sampleEntry, "avcC");
  if (configuration === null) return "start";
  const slices = createAvcSlices(configuration);
  const lengthBytes = lengthBytesOf(configuration, 4);
  let isReset: boolean | undefined;
  for (const unit of nalUnits(sample, lengthBytes)) {
    slices.take(unit);
    const type = avcTypeOf(unit);
    if (type === avcType.idr) return "start";
    // A changed unit may be longer.
    const canReset = () =>
      lengthBytes > 2 &&
      slices.numbersOf(unit) !== null &&
      asIdrSlice(unit.subarray(0, maxSliceHeaderBytes), slices, 0) !== null;
    if (type > avcType.idr || type === 0) continue;
    // Encoders that refresh pictures in parts call some of them sync samples, which may have intra slices beside others.
    if (type === avcType.slice && slices.refersToOthers(unit)) return null;
    isReset = isReset !== false && type === avcType.slice && canReset();
  }
  return isReset === true ? "reset" : "alone";
}

/** A sample after a join. */
export interface JoinedSample {
  data: Uint8Array;
  /**
   * It is shown before the first one and needs others before that, which are not there: it is left out, as Chromium refuses
   * pictures without their references. It counts nevertheless.
   */
  isLost: boolean;
}

/**
 * Returns a function that changes the samples from a sync sample with this join on, in decode order, so that they can follow one that
 * they do not continue. A clean random access picture of HEVC becomes a broken link access picture, at which a decoder starts again
 * (ISO/IEC 23008-2 §3.11, §7.4.2.2); pictures of H.264 get the numbers of those after an IDR picture.
 */
export function createJoin(join: Join, sampleEntry: Uint8Array): (sample: Uint8Array) => JoinedSample {
  const configuration = configurationOf(sampleEntry, "avcC");
  if (configuration === null) return createHevcJoin(sampleEntry);
  if (join === "start") return keepSample;
  const numbers = createRenumbering(createAvcSlices(configuration));
  const lengthBytes = lengthBytesOf(configuration, 4);
  return (sample) => {
    const data = changeUnits(sample, lengthBytes, numbers.change);
    return { data, isLost: numbers.isEarlier };
  };
}

/** Changes nothing. */
export const keepSample = (data: Uint8Array): JoinedSample => ({ data, isLost: false });

/** Returns the sample entry of samples of which some are left out that nothing refers to: of H.264, their numbers have gaps then. */
export function withGaps(sampleEntry: Uint8Array): Uint8Array {
  const configuration = configurationOf(sampleEntry, "avcC");
  if (configuration === null) return sampleEntry;
  const entry = Buffer.from(sampleEntry);
  const contentAt = entry.length - configuration.length;
  const boxAt = contentAt - 8;
  const end = boxAt + entry.readUInt32BE(boxAt);
  const content = withGapsAllowed(entry.subarray(contentAt, end));
  const changed = Buffer.concat([entry.subarray(0, contentAt), content, entry.subarray(end)]);
  changed.writeUInt32BE(changed.length, 0);
  changed.writeUInt32BE(8 + content.length, boxAt);
  return changed;
}

/**
 * Returns what comes before a sync sample whose join is "reset": the same picture as an IDR picture.
 * @param id Other ones next to it have another one.
 */
export function asReset(sample: Uint8Array, sampleEntry: Uint8Array, id: number): Uint8Array {
  const configuration = configurationOf(sampleEntry, "avcC");
  if (configuration === null) return sample;
  const slices = createAvcSlices(configuration);
  return changeUnits(sample, lengthBytesOf(configuration, 4), (unit) => {
    slices.take(unit);
    const type = avcTypeOf(unit);
    if (type === avcType.sps) return withSequenceGaps(unit);
    return type === avcType.slice ? (asIdrSlice(unit, slices, id) ?? unit) : unit;
  });
}

function changeUnits(sample: Uint8Array, lengthBytes: number, change: (unit: Buffer) => Buffer): Buffer {
  const parts: Buffer[] = [];
  for (const unit of nalUnits(sample, lengthBytes)) {
    const changed = change(unit);
    if (changed.length >= 2 ** (8 * lengthBytes)) {
      const rule = `a NAL unit of ${changed.length} bytes is too long: lengths have ${lengthBytes} bytes`;
      throw new ServiceError("upstream_invalid", rule);
    }
    const length = Buffer.alloc(lengthBytes);
    length.writeUIntBE(changed.length, 0, lengthBytes);
    parts.push(length, changed);
  }
  return Buffer.concat(parts);
}

function createHevcJoin(sampleEntry: Uint8Array): (sample: Uint8Array) => JoinedSample {
  const configuration = configurationOf(sampleEntry, "hvcC");
  if (configuration === null) return keepSample;
  const lengthBytes = lengthBytesOf(configuration, 21);
  let keyPictures = 0;
  return (sample) => {
    const types = [...nalUnits(sample, lengthBytes)].map(hevcType);
    if (types.some((type) => type >= hevc.firstKey && type <= hevc.lastKey)) keyPictures += 1;
    if (keyPictures !== 1) return keepSample(sample);
    if (types.some((type) => hevc.skipped.has(type))) return { data: sample, isLost: true };
    if (!types.includes(hevc.cleanAccess)) return keepSample(sample);
    const data = Buffer.from(sample);
    for (const unit of nalUnits(data, lengthBytes)) {
      if (hevcType(unit) === hevc.cleanAccess) unit.writeUInt8((unit[0]! & 0x81) | (hevc.brokenLink << 1), 0);
    }
    return { data, isLost: false };
  };
}

/** Returns how many bytes the lengths of NAL units have in samples of this entry; `null`: it is of another codec. */
export function nalLengthBytes(sampleEntry: Uint8Array): number | null {
  const [avcConfiguration, hevcConfiguration] = ["avcC", "hvcC"].map((type) => configurationOf(sampleEntry, type));
  if (avcConfiguration) return lengthBytesOf(avcConfiguration, 4);
  return hevcConfiguration ? lengthBytesOf(hevcConfiguration, 21) : null;
}
