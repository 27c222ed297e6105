import type { ByteRange } from "../../../net/byte-range.ts";
import type { Representation } from "./representation.ts";

/** One line of the journal. */
export type JournalRecord =
  /** The first line. */
  | { type: "open"; version: 1; identity: string; boot: string }
  /** The machine has started again, and every file was cut to what had been flushed of it. */
  | { type: "boot"; boot: string }
  /** The part is empty; what is written to it from here on is `of` this. */
  | { type: "begin"; part: string; range: ByteRange | null; of: Representation }
  /** All has been written: `size` bytes. */
  | { type: "end"; part: string; size: number }
  /** So many bytes of it have been flushed. */
  | { type: "synced"; part: string; bytes: number }
  /** Its bytes are not to be trusted. */
  | { type: "lost"; part: string };

/** What the journal says of a part. */
export interface Entry {
  range: ByteRange | null;
  of: Representation;
  /** Set once all has been written. */
  size: number | null;
  synced: number;
}

export interface JournalState {
  identity: string;
  boot: string;
  entries: Map<string, Entry>;
  /** Bytes of the lines that were read; what follows is torn. */
  length: number;
}

/** Reads a journal as far as its lines are whole; `undefined` where not even the first one is. */
export function readRecords(text: Buffer): JournalState | undefined {
  let state: JournalState | undefined;
  let start = 0;
  for (let end = text.indexOf(10); end !== -1; end = text.indexOf(10, start)) {
    const record = parseRecord(text.toString("utf8", start, end));
    if (record === undefined) break;
    if (record.type === "open") state = { ...record, entries: new Map(), length: 0 };
    if (state === undefined) break;
    apply(record, state);
    start = end + 1;
    state.length = start;
  }
  return state;
}

function apply(record: JournalRecord, state: JournalState): void {
  const { entries } = state;
  if (record.type === "boot") {
    state.boot = record.boot;
    for (const entry of entries.values()) if (entry.synced !== entry.size) entry.size = null;
  } else if (record.type === "begin") {
    const { range, of } = record;
    entries.set(record.part, { range, of, size: null, synced: 0 });
  } else if (record.type === "lost") {
    entries.delete(record.part);
  } else if (record.type !== "open") {
    const entry = entries.get(record.part);
    if (entry !== undefined && record.type === "end") entry.size = record.size;
    if (entry !== undefined && record.type === "synced") entry.synced = record.bytes;
  }
}

/** The journal is this program's own: a line that is whole is also right. */
function parseRecord(line: string): JournalRecord | undefined {
  try {
    const value: JournalRecord | null = JSON.parse(line);
    return typeof value === "object" && value !== null && "type" in value ? value : undefined;
  } catch {
    return undefined;
  }
}
