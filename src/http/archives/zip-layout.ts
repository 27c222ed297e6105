/** A file of an archive. */
export interface ZipEntry {
  /** With `/` after folders. */
  name: string;
  /** Bytes. */
  size: number;
  modifiedAt: Date;
}

/** Returns the CRC-32 of an entry's content. */
type CrcOf = (index: number) => Promise<number>;

/** A part of an archive: bytes, some of which are known only once the content of an entry is; or that content. */
type ZipPart = { length: number } & (
  | { kind: "bytes"; write: (crcOf: CrcOf) => Promise<Buffer> }
  | { kind: "content"; index: number }
);

/**
 * Yields the parts of a ZIP archive in their order (APPNOTE.TXT 6.3.10): each file stored as it is, its CRC-32 after it
 * (§4.3.9), then the central directory. Zip64 is used for what needs it (§4.5.3). The lengths do not depend on the content. Each part
 * is made when it is asked for: there may be hundreds of thousands of files.
 */
export function* layOutZip(entries: readonly ZipEntry[]): Generator<ZipPart> {
  for (const [index, entry] of entries.entries()) {
    yield { kind: "bytes", length: localHeaderBytes(entry), write: async () => localHeader(entry) };
    yield { kind: "content", index, length: entry.size };
    const write = async (crcOf: CrcOf) => descriptor(entry, await crcOf(index));
    yield { kind: "bytes", length: descriptorBytes(entry), write };
  }
  const size = new ZipSize();
  for (const [index, entry] of entries.entries()) {
    const start = size.offset;
    const write = async (crcOf: CrcOf) => directoryHeader(entry, start, await crcOf(index));
    yield { kind: "bytes", length: directoryHeaderBytes(entry, start), write };
    size.add(entry);
  }
  const { count, directory, offset } = size;
  yield { kind: "bytes", length: size.endBytes, write: async () => endOfDirectory(count, directory, offset) };
}

/** How large an archive is of what was added. */
export class ZipSize {
  count = 0;
  /** Bytes before the central directory. */
  offset = 0;
  /** Bytes of the central directory. */
  directory = 0;

  add(entry: ZipEntry): void {
    this.count += 1;
    this.directory += directoryHeaderBytes(entry, this.offset);
    this.offset += localHeaderBytes(entry) + entry.size + descriptorBytes(entry);
  }

  get endBytes(): number {
    return needsZip64(this.count, this.directory, this.offset) ? 98 : 22;
  }

  get total(): number {
    return this.offset + this.directory + this.endBytes;
  }
}

const max16 = 0xffff;
const max32 = 0xffff_ffff;

/** General purpose flags: the CRC-32 and sizes come after the content (bit 3), the name is UTF-8 (bit 11). */
const flags = 0x0808;
/** Versions of the format that are needed: for what is stored, and for Zip64. */
const plainVersion = 20;
const zip64Version = 45;

const isLarge = ({ size }: ZipEntry): boolean => size >= max32;

const needsZip64 = (count: number, directory: number, offset: number): boolean =>
  count >= max16 || directory >= max32 || offset >= max32;

const localHeaderBytes = (entry: ZipEntry): number => 30 + Buffer.byteLength(entry.name) + (isLarge(entry) ? 20 : 0);

const descriptorBytes = (entry: ZipEntry): number => (isLarge(entry) ? 24 : 16);

function directoryHeaderBytes(entry: ZipEntry, offset: number): number {
  const numbers = (isLarge(entry) ? 2 : 0) + (offset >= max32 ? 1 : 0);
  return 46 + Buffer.byteLength(entry.name) + (numbers > 0 ? 4 + 8 * numbers : 0);
}

/** §4.3.7 */
function localHeader(entry: ZipEntry): Buffer {
  const name = Buffer.from(entry.name);
  const extra = isLarge(entry) ? zip64Extra([0, 0]) : Buffer.alloc(0);
  const sizes = isLarge(entry) ? max32 : 0;
  return Buffer.concat([
    u32(0x0403_4b50),
    ...commonFields(entry, isLarge(entry), 0),
    u32(sizes),
    u32(sizes),
    u16(name.length),
    u16(extra.length),
    name,
    extra,
  ]);
}

/** §4.3.9 */
function descriptor(entry: ZipEntry, crc: number): Buffer {
  const size = isLarge(entry) ? u64(entry.size) : u32(entry.size);
  return Buffer.concat([u32(0x0807_4b50), u32(crc), size, size]);
}

/** §4.3.12; made by Unix, a regular file that all may read. */
function directoryHeader(entry: ZipEntry, offset: number, crc: number): Buffer {
  const name = Buffer.from(entry.name);
  const large = [...(isLarge(entry) ? [entry.size, entry.size] : []), ...(offset >= max32 ? [offset] : [])];
  const extra = large.length > 0 ? zip64Extra(large) : Buffer.alloc(0);
  const size = Math.min(entry.size, max32);
  return Buffer.concat([
    u32(0x0201_4b50),
    u16((3 << 8) | zip64Version),
    ...commonFields(entry, large.length > 0, crc),
    u32(size),
    u32(size),
    u16(name.length),
    u16(extra.length),
    // No comment; on the first disk; binary.
    u16(0),
    u16(0),
    u16(0),
    u32((0o100_644 << 16) >>> 0),
    u32(Math.min(offset, max32)),
    name,
    extra,
  ]);
}

/** From the version that is needed to the CRC-32. */
function commonFields({ modifiedAt }: ZipEntry, isZip64: boolean, crc: number): Buffer[] {
  const stored = 0;
  const [time, date] = dosTime(modifiedAt);
  return [u16(isZip64 ? zip64Version : plainVersion), u16(flags), u16(stored), u16(time), u16(date), u32(crc)];
}

/** §4.3.14 to §4.3.16 */
function endOfDirectory(count: number, bytes: number, offset: number): Buffer {
  const end = Buffer.concat([
    u32(0x0605_4b50),
    u16(0),
    u16(0),
    u16(Math.min(count, max16)),
    u16(Math.min(count, max16)),
    u32(Math.min(bytes, max32)),
    u32(Math.min(offset, max32)),
    u16(0),
  ]);
  if (!needsZip64(count, bytes, offset)) return end;
  const fields = [
    u16(zip64Version),
    u16(zip64Version),
    u32(0),
    u32(0),
    u64(count),
    u64(count),
    u64(bytes),
    u64(offset),
  ];
  const content = Buffer.concat(fields);
  const locator = Buffer.concat([u32(0x0706_4b50), u32(0), u64(offset + bytes), u32(1)]);
  return Buffer.concat([u32(0x0606_4b50), u64(content.length), content, locator, end]);
}

/** §4.5.3 */
function zip64Extra(numbers: readonly number[]): Buffer {
  return Buffer.concat([u16(1), u16(8 * numbers.length), ...numbers.map(u64)]);
}

/** Returns time and date of MS-DOS: 1980 to 2107, without a time zone, here UTC. */
function dosTime(at: Date): [time: number, date: number] {
  const year = Math.min(Math.max(at.getUTCFullYear(), 1980), 2107);
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1);
  return [time, ((year - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate()];
}

function uint(value: number, length: 2 | 4): Buffer {
  const bytes = Buffer.alloc(length);
  bytes.writeUIntLE(value, 0, length);
  return bytes;
}

const u16 = (value: number): Buffer => uint(value, 2);
const u32 = (value: number): Buffer => uint(value, 4);

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
