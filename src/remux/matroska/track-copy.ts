import type { Block, ChosenTracks } from "./blocks.ts";
import { type Element, ids, readBytes } from "./elements.ts";
import { checkLace, isLaced } from "./frames.ts";
import type { MatroskaTrack } from "./tracks.ts";
import type { createUnlacer } from "./vorbis.ts";
import { element, unsigned } from "./write-elements.ts";
import type { WrittenBlock } from "./writer.ts";

export interface CopyPosition {
  /** Of the track in the new file. */
  number: number;
  startTicks: number;
  timestampScale: number;
  unpack: ((payload: Uint8Array, flags: number) => Pick<WrittenBlock, "payload" | "flags">) | undefined;
  unlace: ReturnType<typeof createUnlacer>;
}

/** Returns a function that copies the blocks of a track, each into one, or into one for each frame. It throws a ServiceError, `upstream_invalid`, if the sizes of a lace do not fit. */
export function createTrackCopy(
  file: ChosenTracks,
  track: MatroskaTrack,
  { number, startTicks, timestampScale, unpack, unlace }: CopyPosition,
): (block: Block) => WrittenBlock[] {
  const { fd, header } = file;
  const { codecDelayNs, defaultDurationNs } = track;
  let last: number | undefined;
  let latestStep = 0;
  /** Returns how long a block is presented after its timestamp. */
  const lastsFor = ({ ticks, duration, discardNs, flags }: Block, payload: Uint8Array): number => {
    const frames = isLaced(flags) ? (payload[0] ?? 0) + 1 : 1;
    const stated = (defaultDurationNs * frames) / timestampScale;
    // The last frame may be shorter than those before it.
    const restTicks = (header.durationTicks * header.timestampScale) / timestampScale - ticks;
    const step = restTicks > 0 ? Math.min(latestStep, restTicks) : latestStep;
    return (duration ?? (stated || step)) - (discardNs + codecDelayNs) / timestampScale;
  };
  return (block) => {
    const { isKey, flags, others, duration } = block;
    const copyOther = (other: Element, afterTicks: number): Uint8Array => {
      const isDuration = other.id === ids.blockDuration;
      return element(other.id, isDuration ? unsigned(Math.max(0, (duration ?? 0) - afterTicks)) : readBytes(fd, other));
    };
    const copyOthers = (afterTicks = 0) => others && Buffer.concat(others.map((other) => copyOther(other, afterTicks)));
    const ticks = block.ticks - startTicks;
    if (last !== undefined && ticks > last) latestStep = ticks - last;
    last = ticks;
    const payload = readBytes(fd, block);
    // Players end where a lace is damaged.
    if (isLaced(flags)) checkLace(payload, flags);
    const frames = unpack?.(payload, flags) ?? { payload, flags };
    const copied = { track: number, ticks, endTicks: ticks + lastsFor(block, payload), isKey, ...frames };
    const parts = unlace?.(copied) ?? [];
    if (parts.length < 2) return [{ ...copied, others: copyOthers() }];
    // What a group says of its end is that of the last frame; the others are SimpleBlocks.
    return parts.map((part, i) => {
      const isLast = i === parts.length - 1;
      const single = {
        ...copied,
        payload: part.payload,
        ticks: ticks + part.afterTicks,
        flags: copied.flags & ~lacing,
      };
      return isLast
        ? { ...single, others: copyOthers(part.afterTicks) }
        : { ...single, flags: single.flags | keyFlag, others: null };
    });
  };
}

/** Of the flags of a block (RFC 9559 §10.1, §10.2). */
const lacing = 0x06;
const keyFlag = 0x80;
