import { crc32 } from "../codecs/checksums.ts";
import type { PidReader } from "./pids.ts";

const maxLength = 4096;
const headLength = 3;
const stuffing = 0xff;
/** From it on, the checksum of a complete section with its checksum is 0 (Annex A). */
export const checksumStart = 0xffff_ffff;

/**
 * Creates a reader that assembles the sections of a table (ISO/IEC 13818-1 §2.4.4).
 * @param onSection Gets every section with a correct checksum; it is valid until the call returns.
 */
export function createSectionReader(onSection: (section: Buffer) => void): PidReader {
  const buffer = Buffer.alloc(maxLength);
  let length = 0;
  let isOpen = false;

  const append = (bytes: Uint8Array, from: number, to: number): void => {
    let at = from;
    while (isOpen && at < to) {
      if (length === 0 && bytes[at] === stuffing) {
        isOpen = false;
        return;
      }
      const wanted = length < headLength ? headLength : sectionLength(buffer);
      const count = Math.min(to - at, wanted - length);
      buffer.set(bytes.subarray(at, at + count), length);
      length += count;
      at += count;
      if (length < headLength || length < sectionLength(buffer)) continue;
      const section = buffer.subarray(0, length);
      length = 0;
      if (crc32(section, checksumStart) === 0) onSection(section);
    }
  };
  return {
    read(bytes, from, to, isStart) {
      if (!isStart) {
        append(bytes, from, to);
        return;
      }
      const start = Math.min(to, from + 1 + (bytes[from] ?? 0));
      append(bytes, from + 1, start);
      length = 0;
      isOpen = true;
      append(bytes, start, to);
    },
    onLoss() {
      isOpen = false;
      length = 0;
    },
  };
}

function sectionLength(section: Uint8Array): number {
  return Math.min(maxLength, headLength + ((((section[1] ?? 0) & 0x0f) << 8) | (section[2] ?? 0)));
}

/** A stream in a program map (ISO/IEC 13818-1 §2.4.4.9). */
export interface ProgramStream {
  pid: number;
  streamType: number;
  /** Where the section has its stream_type. */
  at: number;
  /** Content by tag; the first of each tag. */
  descriptors: ReadonlyMap<number, Uint8Array>;
}

const associationTable = 0;
const mapTable = 2;
const checksumLength = 4;

/** Returns the programs, with the PID of the map of each; `null` if `section` is no current program association. */
export function readAssociations(section: Uint8Array): { program: number; pid: number }[] | null {
  if (section[0] !== associationTable || !isCurrent(section)) return null;
  const programs: { program: number; pid: number }[] = [];
  for (let at = 8; at + 4 <= section.length - checksumLength; at += 4) {
    const program = readLow(section, at, 0xff);
    if (program !== 0) programs.push({ program, pid: readLow(section, at + 2, 0x1f) });
  }
  return programs;
}

/** Returns the number of the program that a program map is of. */
export const readProgramNumber = (section: Uint8Array): number => readLow(section, 3, 0xff);

/** Returns the program's streams; `null` if `section` is no current program map. */
export function readProgramMap(section: Uint8Array): ProgramStream[] | null {
  if (section[0] !== mapTable || section.length < 16 || !isCurrent(section)) return null;
  const streams: ProgramStream[] = [];
  const end = section.length - checksumLength;
  let at = 12 + readLow(section, 10, 0x0f);
  const ofProgram = readDescriptors(section.slice(12, Math.min(end, at)));
  while (at + 5 <= end) {
    const next = Math.min(end, at + 5 + readLow(section, at + 3, 0x0f));
    const descriptors = new Map([...ofProgram, ...readDescriptors(section.slice(at + 5, next))]);
    const pid = readLow(section, at + 1, 0x1f);
    streams.push({ pid, streamType: section[at] ?? 0, at, descriptors });
    at = next;
  }
  return streams;
}

function isCurrent(section: Uint8Array): boolean {
  return ((section[5] ?? 0) & 1) === 1;
}

function readLow(bytes: Uint8Array, at: number, mask: number): number {
  return (((bytes[at] ?? 0) & mask) << 8) | (bytes[at + 1] ?? 0);
}

function readDescriptors(bytes: Uint8Array): ReadonlyMap<number, Uint8Array> {
  const found = new Map<number, Uint8Array>();
  for (let at = 0; at + 2 <= bytes.length; at += 2 + (bytes[at + 1] ?? 0)) {
    const tag = bytes[at] ?? 0;
    const content = bytes.subarray(at + 2, at + 2 + (bytes[at + 1] ?? 0));
    if (!found.has(tag)) found.set(tag, content);
  }
  return found;
}
