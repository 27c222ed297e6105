/** A stream in a program map (ISO/IEC 13818-1 §2.4.4.9). */
export interface ProgramStream {
  pid: number;
  streamType: number;
  /** Content by tag; the first of each tag. */
  descriptors: ReadonlyMap<number, Uint8Array>;
}

const associationTable = 0;
const mapTable = 2;
const checksumLength = 4;

/** Returns the PIDs of the program maps; `null` if `section` is no current program association. */
export function readAssociations(section: Uint8Array): number[] | null {
  if (section[0] !== associationTable || !isCurrent(section)) return null;
  const pids: number[] = [];
  for (let at = 8; at + 4 <= section.length - checksumLength; at += 4) {
    const program = ((section[at] ?? 0) << 8) | (section[at + 1] ?? 0);
    if (program !== 0) pids.push(readLow(section, at + 2, 0x1f));
  }
  return pids;
}

/** Returns the program's streams; `null` if `section` is no current program map. */
export function readProgramMap(section: Uint8Array): ProgramStream[] | null {
  if (section[0] !== mapTable || section.length < 16 || !isCurrent(section)) return null;
  const streams: ProgramStream[] = [];
  const end = section.length - checksumLength;
  let at = 12 + readLow(section, 10, 0x0f);
  while (at + 5 <= end) {
    const next = Math.min(end, at + 5 + readLow(section, at + 3, 0x0f));
    const descriptors = readDescriptors(section.slice(at + 5, next));
    const pid = readLow(section, at + 1, 0x1f);
    streams.push({ pid, streamType: section[at] ?? 0, descriptors });
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
