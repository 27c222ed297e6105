import { ServiceError } from "../../errors.ts";
import { packetLength } from "./packets.ts";

/** Gives the payload of packets to the readers of their PIDs (ISO/IEC 13818-1 §2.4.3.2). */
export interface PidTable {
  set(pid: number, reader: PidReader): void;
  delete(pid: number): void;
  has(pid: number): boolean;
  /** Reads the packet that begins at `at`. */
  read(bytes: Uint8Array, at: number): void;
  /** Packets may be counted anew from here on, where a unit begins with them. */
  startPiece(): void;
}

export interface PidReader {
  /** Payload; `isStart`: payload_unit_start_indicator. */
  read(bytes: Uint8Array, from: number, to: number, isStart: boolean): void;
  /** Packets are missing before the next payload. */
  onLoss(): void;
}

interface Pid {
  reader: PidReader;
  /** continuity_counter of the packet before; −1: none. */
  counter: number;
  /** Number of the piece it came from. */
  piece: number;
  /** Scrambled packets in a row. */
  scrambled: number;
}

/** Fewer scrambled packets in a row than these are damaged ones. */
const maxScrambled = 32;

/**
 * @throws ServiceError from `read`: `drm_protected` where 32 packets in a row that are wanted are
 * scrambled.
 */
export function createPidTable(): PidTable {
  const pids: (Pid | undefined)[] = Array.from({ length: 8192 });
  let piece = 0;
  return {
    set(pid, reader) {
      pids[pid] = { reader, counter: -1, piece, scrambled: 0 };
    },
    delete(pid) {
      pids[pid] = undefined;
    },
    has: (pid) => pids[pid] !== undefined,
    startPiece() {
      piece++;
    },
    read(bytes, at) {
      const second = bytes[at + 1] ?? 0;
      const pid = pids[((second & 0x1f) << 8) | (bytes[at + 2] ?? 0)];
      if (pid === undefined) return;
      const control = bytes[at + 3] ?? 0;
      const hasPayload = (control & 0x10) !== 0;
      const isDamaged = (second & 0x80) !== 0;
      if (!hasPayload || isDamaged) return;
      let from = at + 4;
      let isRestart = false;
      if (control & 0x20) {
        const length = bytes[from] ?? 0;
        isRestart = length > 0 && ((bytes[from + 1] ?? 0) & 0x80) !== 0;
        from += 1 + length;
      }
      if (control & 0xc0) {
        refuseScrambled(++pid.scrambled);
        return;
      }
      pid.scrambled = 0;
      const isStart = (second & 0x40) !== 0;
      const counter = control & 0x0f;
      const isDuplicate = counter === pid.counter && !isRestart && pid.piece === piece;
      if (isDuplicate) return;
      const isFollowing = pid.counter < 0 || counter === ((pid.counter + 1) & 0x0f);
      const isNewCount = isStart && (isRestart || pid.piece !== piece);
      pid.counter = counter;
      pid.piece = piece;
      if (!isFollowing && !isNewCount) pid.reader.onLoss();
      const to = at + packetLength;
      if (from < to) pid.reader.read(bytes, from, to, isStart);
    },
  };
}

function refuseScrambled(count: number): void {
  if (count < maxScrambled) return;
  throw new ServiceError("drm_protected", `the stream is scrambled: ${count} packets in a row`);
}
