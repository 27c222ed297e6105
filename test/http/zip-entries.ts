/** A file of an archive, by its entry of the central directory. */
interface ReadEntry {
  name: string;
  content: string;
  crc: number;
}

/** Returns the files of an archive that is smaller than 4 GiB. */
export function readEntries(zip: Buffer): ReadEntry[] {
  const end = zip.length - 22;
  let at = zip.readUInt32LE(end + 16);
  return Array.from({ length: zip.readUInt16LE(end + 10) }, () => {
    const [size, nameLength, extraLength] = [
      zip.readUInt32LE(at + 24),
      zip.readUInt16LE(at + 28),
      zip.readUInt16LE(at + 30),
    ];
    const name = zip.toString("utf8", at + 46, at + 46 + nameLength);
    const local = zip.readUInt32LE(at + 42);
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const crc = zip.readUInt32LE(at + 16);
    at += 46 + nameLength + extraLength;
    return { name, content: zip.toString("utf8", start, start + size), crc };
  });
}
