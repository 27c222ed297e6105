import type { MediaRecord } from "./stream-journal.ts";

interface Layout {
  /** How many bytes of the memory. */
  filled: number;
  /** The parts of it that media belong in, which follow each other in the file. */
  media: Buffer[];
  /** Where they start. */
  mediaAt: number;
  /** Of how many records this is the rest. */
  sent: number;
  /** How many bytes of the next one have been sent then. */
  position: number;
}

/** Lays out what follows `position` of the first record, with what is in front of media in its place: one call reads the media of many. */
export function layOut(records: readonly MediaRecord[], position: number, into: Buffer): Layout {
  const media: Buffer[] = [];
  let mediaAt = 0;
  let mediaBytes = 0;
  let filled = 0;
  let sent = 0;
  for (const { head, offset, bytes } of records) {
    const part = head.subarray(position, position + into.length - filled);
    into.set(part, filled);
    filled += part.length;
    position += part.length;
    const count = position < head.length ? 0 : Math.min(head.length + bytes - position, into.length - filled);
    if (count > 0) {
      const at = offset + position - head.length;
      if (media.length === 0) mediaAt = at;
      else if (at !== mediaAt + mediaBytes) break;
      media.push(into.subarray(filled, filled + count));
      mediaBytes += count;
      filled += count;
      position += count;
    }
    if (position < head.length + bytes) break;
    sent += 1;
    position = 0;
  }
  return { filled, media, mediaAt, sent, position };
}
