import type { FileWindow } from "../open-file.ts";
import { createContinuityCheck } from "./continuity.ts";
import { findPackets, longestStride, packetLength, sync, timedStride } from "./packets.ts";

/** Returns whether a file is MPEG-TS of which the last packet is cut off. */
export function endsWithinPacket(file: FileWindow): boolean {
  const start = findStart(file);
  if (start === undefined) return false;
  const { at, stride } = start;
  return file.at(file.size - (file.size % stride))[at] === sync;
}

/**
 * Returns at how many places of a file, if it is MPEG-TS, there are bytes that are not packets: between two packets, or
 * after the last one, there as many as a packet has or more; and at how many others packets of audio or video are missing.
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
  const start = findPackets(file.at(0).subarray(0, 5 * longestStride), 0);
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
