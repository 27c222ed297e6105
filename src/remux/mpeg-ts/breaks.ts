import type { FileWindow } from "../open-file.ts";
import {
  certainBytes,
  findPackets,
  longestStride,
  mediaOf,
  packetLength,
  streamIdAt,
  sync,
  timedStride,
} from "./packets.ts";
import { pidOf } from "./pids.ts";

/** Returns whether a file is MPEG-TS of which the last packet is cut off. */
export function endsWithinPacket(file: FileWindow): boolean {
  const start = findStart(file);
  if (start === undefined) return false;
  const { at, stride } = start;
  return file.at(file.size - (file.size % stride))[at] === sync;
}

/**
 * Counts the places of an MPEG-TS file at which bytes are not packets (`breaks`), and those at which packets of audio or video are missing
 * (`losses`); 0 for another file. Bytes after the last packet count if they are as many as a packet has, or more.
 */
export function countPacketBreaks(file: FileWindow): { breaks: number; losses: number } {
  const start = findStart(file);
  if (start === undefined) return { breaks: 0, losses: 0 };
  const continuity = createContinuityCheck();
  let { at, stride } = start;
  let breaks = 0;
  while (at < file.size) {
    const bytes = file.at(at);
    const isEnd = at + bytes.length >= file.size;
    const last = isEnd ? bytes.length : bytes.length - packetLength;
    let end = 0;
    for (; end < last && bytes[end] === sync; end += stride) {
      if (end + packetLength <= bytes.length) continuity.read(bytes, end);
    }
    at += end;
    if (end >= last) continue;
    const found = findNext(file, at);
    if (found === undefined) {
      if (file.size - at >= packetLength) breaks += 1;
      break;
    }
    breaks += 1;
    continuity.reset();
    ({ at, stride } = found);
  }
  return { breaks, losses: continuity.losses() };
}

/** Returns where the packets of a file start, and their stride; undefined: it does not start with a packet, or the timestamp of one. */
function findStart(file: FileWindow): { at: number; stride: number } | undefined {
  const start = findPackets(file.at(0).subarray(0, certainBytes), 0);
  const { at, stride } = start;
  const isStart = stride !== 0 && at === (stride === timedStride ? timedStride - packetLength : 0);
  return isStart ? start : undefined;
}

/** Returns where packets follow each other from `from` on; undefined: nowhere. */
function findNext(file: FileWindow, from: number): { at: number; stride: number } | undefined {
  for (let at = from; at < file.size;) {
    const bytes = file.at(at);
    const found = findPackets(bytes, 0);
    if (found.stride !== 0) return { at: at + found.at, stride: found.stride };
    at += Math.max(1, bytes.length - longestStride);
    if (bytes.length <= longestStride) return undefined;
  }
  return undefined;
}

interface Pid {
  /** continuity_counter of the last packet; −1: any may follow. */
  counter: number;
  /** Number of tables that had come before the last packet. */
  tables: number;
}

const counterBits = 0x0f;

/**
 * Counts the places where packets of audio or video are missing, by the continuity counters of their PIDs (ISO/IEC 13818-1 §2.4.3.3).
 * Some jumps lose nothing and do not count: a packet that is sent again, a discontinuity that is announced, a counter that also counts
 * packets without payload, and one that restarts with a payload unit after a PAT, as in files that were joined.
 */
function createContinuityCheck() {
  const pids: (Pid | undefined)[] = Array.from({ length: 8192 });
  /** Program association tables so far. */
  let tables = 0;
  let losses = 0;
  return {
    /** Reads the complete packet at `at`. */
    read(bytes: Uint8Array, at: number): void {
      const [second = 0, control = 0] = [bytes[at + 1], bytes[at + 3]];
      // transport_error_indicator: its fields may be wrong.
      if ((second & 0x80) !== 0) return;
      const pid = pidOf(bytes, at);
      if (pid === 0) tables += 1;
      const isStart = (second & 0x40) !== 0;
      // Also private data count, such as AC-3.
      if (pids[pid] === undefined && mediaOf(streamIdAt(bytes, at)) === undefined) return;
      const found = (pids[pid] ??= { counter: -1, tables });
      const counter = control & counterBits;
      const { counter: last, tables: lastTables } = found;
      const isAnnounced = (control & 0x20) !== 0 && (bytes[at + 4] ?? 0) > 0 && ((bytes[at + 5] ?? 0) & 0x80) !== 0;
      const isNext = last < 0 || counter === last || counter === ((last + 1) & counterBits);
      const isJoin = isStart && tables !== lastTables;
      const hasPayload = (control & 0x10) !== 0;
      if (hasPayload && !isNext && !isAnnounced && !isJoin) losses += 1;
      found.counter = !hasPayload && isAnnounced ? -1 : counter;
      found.tables = tables;
    },
    /** Forgets the counters: what is missing before the next packet is reported elsewhere. */
    reset(): void {
      pids.fill(undefined);
    },
    losses: (): number => losses,
  };
}
