/** A stream in the program map of a synthetic transport stream. */
interface StreamDescription {
  pid: number;
  streamType: number;
  descriptors?: Uint8Array;
}

export const videoPid = 256;
export const audioPid = 257;

/** Creates a maker of packets; continuity counters continue from call to call. `mapPid`: of the first program map, `mapStep`: to the next one's. */
export function createPacketMaker(mapPid = 4096, mapStep = 1) {
  const counters = new Map<number, number>();
  const packet = (pid: number, payload: Uint8Array, isStart: boolean): Buffer => {
    const counter = counters.get(pid) ?? 0;
    counters.set(pid, (counter + 1) & 15);
    const bytes = Buffer.alloc(188, 0xff);
    bytes[0] = 0x47;
    bytes.writeUInt16BE((isStart ? 0x4000 : 0) | pid, 1);
    const stuffing = 184 - payload.length;
    bytes[3] = (stuffing > 0 ? 0x30 : 0x10) | counter;
    if (stuffing > 0) bytes[4] = stuffing - 1;
    if (stuffing > 1) bytes[5] = 0;
    bytes.set(payload, 4 + stuffing);
    return bytes;
  };
  const spread = (pid: number, unit: Uint8Array): Buffer => {
    const packets: Buffer[] = [];
    for (let at = 0; at < unit.length; at += 184) {
      packets.push(packet(pid, unit.subarray(at, at + 184), at === 0));
    }
    return Buffer.concat(packets);
  };
  const section = (pid: number, tableId: number, content: Uint8Array, program = 1): Buffer => {
    const head = Buffer.from([tableId, 0xb0, 0, 0, program, 0xc1, 0, 0]);
    head.writeUInt16BE(0xb000 | (content.length + 9), 1);
    const body = Buffer.concat([head, content]);
    const check = Buffer.alloc(4);
    check.writeUInt32BE(crc32(body));
    return spread(pid, Buffer.concat([Buffer.from([0]), body, check]));
  };
  /** Returns a program association and the maps of programs with these streams, and with descriptors of each program. */
  const programs = (maps: readonly (readonly StreamDescription[])[], descriptors = Buffer.alloc(0)): Buffer => {
    const pids = maps.map((_, i) => mapPid + i * mapStep);
    const association = pids.flatMap((pid, i) => [0, i + 1, 0xe0 | (pid >> 8), pid & 0xff]);
    const sections = maps.map((streams, i) => section(pids[i]!, 2, mapOf(streams, descriptors), i + 1));
    return Buffer.concat([section(0, 0, Buffer.from(association)), ...sections]);
  };
  return {
    packet,
    programs,
    /** Returns a program association and a program map. */
    tables: (streams: readonly StreamDescription[]): Buffer => programs([streams]),
    /** Returns a PES packet; `length`: its stated length, 0: unbounded. */
    pes(pid: number, pts: number | null, payload: Uint8Array, length = 0): Buffer {
      const id = pid === videoPid ? 0xe0 : 0xc0;
      const head = Buffer.from([0, 0, 1, id, 0, 0, 0x80, pts === null ? 0 : 0x80, 0]);
      head.writeUInt16BE(length, 4);
      if (pts === null) return spread(pid, Buffer.concat([head, payload]));
      head[8] = 5;
      return spread(pid, Buffer.concat([head, stampOf(pts), payload]));
    },
  };
}

function mapOf(streams: readonly StreamDescription[], ofProgram: Uint8Array): Buffer {
  const entries = streams.map(({ pid, streamType, descriptors = Buffer.alloc(0) }) => {
    const head = Buffer.from([streamType, 0xe0 | (pid >> 8), pid & 0xff, 0xf0, 0]);
    head[4] = descriptors.length;
    return Buffer.concat([head, descriptors]);
  });
  return Buffer.concat([Buffer.from([0xe1, 0, 0xf0, ofProgram.length]), ofProgram, ...entries]);
}

function stampOf(pts: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes[0] = 0x21 | ((Math.floor(pts / 2 ** 30) & 7) << 1);
  bytes.writeUInt16BE(((Math.floor(pts / 2 ** 15) & 0x7fff) << 1) | 1, 1);
  bytes.writeUInt16BE(((pts & 0x7fff) << 1) | 1, 3);
  return bytes;
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x80000000 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  }
  return crc >>> 0;
}

/** Returns `count` AAC frames in ADTS (48 kHz, stereo) of `size` bytes. */
export function adtsFrames(count: number, size = 100): Buffer {
  const frame = Buffer.alloc(size, 0x21);
  frame.set([0xff, 0xf1, 0x4c, 0x80 | (size >> 11), (size >> 3) & 0xff, ((size & 7) << 5) | 0x1f]);
  frame[6] = 0xfc;
  return Buffer.concat(Array.from({ length: count }, () => frame));
}

const sps = Buffer.from("6742c00a95a0505a100000030010000003032", "hex");
const pps = Buffer.from("68ce3c80", "hex");
const startCode = Buffer.from([0, 0, 0, 1]);

/** Returns a coded picture of H.264 with `size` bytes of slice data; a key frame has parameter sets. */
export function avcPicture(isKey: boolean, size = 50): Buffer {
  const slice = Buffer.alloc(size, 0x55);
  slice[0] = isKey ? 0x65 : 0x41;
  slice[1] = 0x88;
  const delimiter = Buffer.from([9, 0xf0]);
  const units = isKey ? [delimiter, sps, pps, slice] : [delimiter, slice];
  return Buffer.concat(units.flatMap((unit) => [startCode, unit]));
}
