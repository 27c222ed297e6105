import { createFileWindow, type FileWindow, openFile } from "../open-file.ts";
import { isIntact, readPage } from "./pages.ts";

/**
 * Counts the places of an Ogg file at which pages are damaged, missing, doubled or out of order (RFC 3533 §6), by
 * their lengths, checksums and numbers; if most are out of order, they are not numbered. What comes after the last page does not count.
 * Of a file in which damaged pages have more bytes than the file, those are counted that were found until then.
 */
export function countOggBreaks(file: FileWindow): number {
  /** Of each logical stream: the number of its next page; `null`: any. */
  const next = new Map<number, number | null>();
  let pages = 0;
  let damaged = 0;
  let unordered = 0;
  let isLost = false;
  /** Bytes of pages that may turn out to be damaged: headers within each other would be checked again and again. */
  let suspectBytes = Math.max(file.size, minSuspectBytes);
  for (let at = 0; at < file.size;) {
    const page = readPage(file, at);
    if (page === undefined || !isIntact(file.at(at).subarray(0, page.end - at))) {
      suspectBytes -= page === undefined ? 0 : page.end - at;
      if (suspectBytes < 0) return damaged + 1;
      at = file.find(signatures, at + 1, file.size);
      if (!isLost && (page !== undefined || at < file.size)) damaged += 1;
      isLost = true;
      next.clear();
      continue;
    }
    isLost = false;
    const { serial, sequence, isFirst, isLast, end } = page;
    const expected = next.get(serial) ?? null;
    // A stream that follows another one may have its serial number.
    if (expected !== null && (isFirst || sequence !== expected)) unordered += 1;
    next.set(serial, isLast ? null : sequence + 1);
    pages += 1;
    at = end;
  }
  return damaged + (unordered * 2 <= pages ? unordered : 0);
}

/**
 * Returns how many streams, or groups of them, follow each other in an Ogg file (RFC 3533 §4), as far as its pages can be read; 0 of
 * another file. @throws the file system's own errors.
 */
export function countOggLinks(path: string): number {
  using opened = openFile(path);
  const file = createFileWindow(opened);
  let links = 0;
  let wasFirst = false;
  for (let page = readPage(file, 0); page !== undefined; page = readPage(file, page.end)) {
    if (page.isFirst && !wasFirst) links += 1;
    wasFirst = page.isFirst;
  }
  return links;
}

/** Packets that come before audio, by what the first one begins with. */
const headers = [
  { start: "OpusHead", count: 2 },
  { start: "\x01vorbis", count: 3 },
];

/** Returns how many packets of Opus and Vorbis the streams of an Ogg file have after their headers, by serial number; of the first streams, if others follow. */
export function countOggPackets(file: FileWindow): Map<number, number> {
  const counts = new Map<number, number>();
  /** Of the packet that goes on. */
  const open = new Map<number, number>();
  let wasFirst = true;
  for (let page = readPage(file, 0); page !== undefined; page = readPage(file, page.end)) {
    const { serial, isFirst, body, segments } = page;
    if (isFirst && !wasFirst) break;
    wasFirst = isFirst;
    const start = isFirst ? file.at(body).toString("latin1", 0, 8) : "";
    const codec = headers.find((each) => start.startsWith(each.start));
    if (codec !== undefined) counts.set(serial, -codec.count);
    const before = counts.get(serial);
    if (before === undefined) continue;
    let [packets, bytes] = [before, open.get(serial) ?? 0];
    for (const size of segments) {
      bytes += size;
      if (size === 255) continue;
      // Some end with one that is empty.
      if (bytes > 0) packets += 1;
      bytes = 0;
    }
    counts.set(serial, packets);
    open.set(serial, bytes);
  }
  return counts;
}

const minSuspectBytes = 1024 * 1024;

const signatures = [Buffer.from("OggS")];
