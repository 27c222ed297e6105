import { ServiceError } from "../../model/errors.ts";
import { packetLength } from "./packets.ts";
import { SegmentStarts } from "./segment-starts.ts";

export interface PidReader {
  /** Reads the payload of a packet; `isStart`: payload_unit_start_indicator. */
  read(bytes: Buffer, from: number, to: number, isStart: boolean): void;
  /** Packets are missing before the next payload. */
  onLoss(): void;
  /** Called instead at the start of a segment, whose counters may have been restarted. */
  onBreak?(): void;
}

class Pid {
  readonly reader: PidReader;
  readonly starts: SegmentStarts;
  /** continuity_counter of the last packet; −1: none yet. */
  counter = -1;
  /** It has changed. Until then its writer may never count, so that it says nothing of packets that are missing. */
  isCounting = false;
  /** Before it changed, other packets of a segment had the same one. */
  isStill = false;
  /** Its first one: packagers that restart it in each segment begin with the same one. */
  firstCounter = -1;
  /** Number of the segment it came from. */
  segment: number;
  /** How often the program association had counted from the start again before its last packet. */
  restarts = 0;
  /** Where it starts in `bytes`, which hold it until the segment ends. */
  at = 0;
  bytes: Uint8Array = new Uint8Array();
  /** Scrambled packets in a row. */
  scrambled = 0;
  /** A packet without payload has announced that the counter may restart (discontinuity_indicator). */
  isRestart = false;

  constructor(reader: PidReader, segment: number) {
    this.reader = reader;
    this.starts = new SegmentStarts(() => reader.onBreak?.());
    this.segment = segment;
  }
}

/** Returns the PID of the packet that starts at `at`. */
export function pidOf(bytes: Uint8Array, at: number): number {
  return (((bytes[at + 1] ?? 0) & 0x1f) << 8) | (bytes[at + 2] ?? 0);
}

/** Of the program association table. */
export const associationPid = 0;

/** Fewer scrambled packets in a row count as damaged. */
const maxScrambled = 32;

/** Passes the payload of packets to the readers of their PIDs (ISO/IEC 13818-1 §2.4.3.2). */
export class PidTable {
  readonly #pids: (Pid | undefined)[] = Array.from({ length: 8192 });
  #segment = 0;
  /** Number of the latest segment that does not follow the one before. */
  #joined = 0;
  /** How often the program association has counted from the start again, as in files that were put together. */
  #restarts = 0;
  /** How often media continued counting after it: then it always has the same counter. And how often they counted from the start, too. */
  #unjoined = 0;
  #joints = 0;

  set(pid: number, reader: PidReader): void {
    this.#pids[pid] = new Pid(reader, this.#segment);
  }

  /** Removes a reader, unless its PID has another one now. */
  delete(pid: number, reader: PidReader): void {
    if (this.get(pid) === reader) this.#pids[pid] = undefined;
  }

  get(pid: number): PidReader | undefined {
    return this.#pids[pid]?.reader;
  }

  /**
   * From here on a continuity counter may restart with a packet that starts a payload unit.
   * @param isNext Whether it follows the segment before; if not, what its counters miss is known.
   */
  startSegment(isNext: boolean): void {
    this.#segment++;
    if (!isNext) this.#joined = this.#segment;
  }

  /** Other times have begun in the payload unit that is being read: its counter may begin too. */
  startTimes(pid: number): void {
    this.#pids[pid]?.starts.startTimes();
  }

  /** The payload unit that is being read comes late: if its counter restarted, that is a coincidence. */
  noteGap(pid: number): void {
    this.#pids[pid]?.starts.noteGap();
  }

  /** Reports to the readers what is known to be missing; nothing follows. */
  finish(): void {
    for (const pid of this.#pids) pid?.starts.endUnit();
  }

  /**
   * Reads the packet that starts at `at`.
   * @throws ServiceError `drm_protected` if 32 packets in a row of a wanted PID are scrambled.
   */
  read(bytes: Buffer, at: number): void {
    const second = bytes[at + 1] ?? 0;
    const number = pidOf(bytes, at);
    const pid = this.#pids[number];
    // transport_error_indicator
    if (pid === undefined || second & 0x80) return;
    const control = bytes[at + 3] ?? 0;
    const from = at + 4 + (control & 0x20 ? readAdaptation(pid, bytes, at + 4) : 0);
    const counter = control & 0x0f;
    const hasPayload = (control & 0x10) !== 0;
    if (!hasPayload) {
      // The next payload has the number after it (§2.4.3.5).
      if (pid.isRestart) pid.counter = counter;
      return;
    }
    const { isRestart } = pid;
    pid.isRestart = false;
    if (control & 0xc0) {
      refuseScrambled(++pid.scrambled);
      return;
    }
    pid.scrambled = 0;
    const isStart = (second & 0x40) !== 0;
    const isBound = !isRestart && pid.segment === this.#segment;
    const isFollowing = pid.counter < 0 || counter === ((pid.counter + 1) & 0x0f);
    const isAgain = isStart && !isFollowing && counter === pid.firstCounter;
    if (isAgain && number === associationPid) this.#restarts += 1;
    if (isBound && counter === pid.counter && isDuplicate(pid, bytes, at)) return;
    if (isStart) this.#startUnit(pid, counter, isFollowing, isRestart);
    const isLost = isLossKnown(pid, counter, isFollowing, isBound);
    const isJoin = isAgain && this.#unjoined <= this.#joints && pid.restarts !== this.#restarts;
    if (pid.isCounting && pid.restarts !== this.#restarts) {
      if (isFollowing) this.#unjoined += 1;
      else if (isAgain) this.#joints += 1;
    }
    if (pid.firstCounter < 0) pid.firstCounter = counter;
    pid.counter = counter;
    pid.segment = this.#segment;
    pid.restarts = this.#restarts;
    pid.at = at;
    pid.bytes = bytes;
    const isCountRestart = isStart && !isBound;
    if (isLost && !isCountRestart && !isJoin) pid.reader.onLoss();
    const to = at + packetLength;
    if (from < to) pid.reader.read(bytes, from, to, isStart);
  }

  /** Notes what the counter of the packet that starts a payload unit says of the segments before. */
  #startUnit(pid: Pid, counter: number, isFollowing: boolean, isRestart: boolean): void {
    pid.starts.endUnit();
    const isBoundary = pid.counter >= 0 && pid.segment !== this.#segment && pid.segment >= this.#joined;
    if (isRestart || !isBoundary) return;
    // A packager that counts from the start again does so in the tables too.
    const isSameCount = this.#pids[associationPid]?.starts.hasContinuedIn(this.#segment) === true;
    pid.starts.note(this.#segment, isFollowing, !isSameCount && counter === pid.firstCounter);
  }
}

/** Whether packets are missing in front of one, which is no duplicate; `isBound`: its counter may not restart. */
function isLossKnown(pid: Pid, counter: number, isFollowing: boolean, isBound: boolean): boolean {
  if (pid.counter < 0 || pid.isCounting) return !isFollowing;
  if (counter === pid.counter) {
    pid.isStill ||= isBound;
    return false;
  }
  pid.isCounting = true;
  // So 15 packets, or more, were missing between those that had the same one.
  return !isFollowing || pid.isStill;
}

/** Reads the adaptation field at `at` (§2.4.3.4); returns its length. */
function readAdaptation(pid: Pid, bytes: Uint8Array, at: number): number {
  const length = bytes[at] ?? 0;
  pid.isRestart ||= length > 0 && ((bytes[at + 1] ?? 0) & 0x80) !== 0;
  return 1 + length;
}

const pcrFlag = 0x10;
const pcrFrom = 6;
const pcrTo = 12;

/**
 * Whether the packet at `at` is the last one sent again, which may differ in its clock reference only (§2.4.3.3).
 * Any other packet with its counter comes after 15 that are missing, or more.
 */
function isDuplicate(last: Pid, bytes: Uint8Array, at: number): boolean {
  const isClocked =
    ((bytes[at + 3] ?? 0) & 0x20) !== 0 &&
    (bytes[at + 4] ?? 0) > pcrTo - pcrFrom &&
    ((bytes[at + 5] ?? 0) & pcrFlag) !== 0;
  for (let i = 0; i < packetLength; i++) {
    if (isClocked && i === pcrFrom) i = pcrTo;
    if (bytes[at + i] !== last.bytes[last.at + i]) return false;
  }
  return true;
}

function refuseScrambled(count: number): void {
  if (count < maxScrambled) return;
  throw new ServiceError("drm_protected", `the stream is scrambled: ${count} packets in a row`);
}
