import type { ByteRange } from "../../../net/byte-range.ts";
import type { Representation } from "./representation.ts";

/** One line of the journal. */
export type JournalRecord =
  /** The first line. */
  | { type: "open"; version: 1; identity: string; boot: string }
  /** The machine was restarted, and each file was cut to its flushed bytes. */
  | { type: "boot"; boot: string }
  /** The part is empty; bytes written from now on, requested at `from`, belong to the representation `of`. */
  | { type: "begin"; part: string; from: string; range: ByteRange | null; of: Representation }
  /** Its bytes have been found at another URL. */
  | { type: "moved"; part: string; from: string; of: Representation }
  /** The part is complete. */
  | { type: "end"; part: string; size: number }
  /** Its first `bytes` have been flushed. */
  | { type: "synced"; part: string; bytes: number }
  /** Its bytes must not be used. */
  | { type: "lost"; part: string };

/** The last state of a part. */
export interface PartState {
  /** URL requested, without query. */
  from: string;
  range: ByteRange | null;
  of: Representation;
  /** Bytes; `null`: not complete. */
  size: number | null;
  synced: number;
}

export interface JournalState {
  identity: string;
  boot: string;
  parts: Map<string, PartState>;
  /** Bytes of the valid lines; a torn end follows. */
  length: number;
}

/** Parses a journal up to the first torn line; `undefined` if that is its first line. */
export function parseJournal(text: Buffer): JournalState | undefined {
  let state: JournalState | undefined;
  let start = 0;
  for (let end = text.indexOf(10); end !== -1; end = text.indexOf(10, start)) {
    const record = parseRecord(text.toString("utf8", start, end));
    if (record === undefined) break;
    if (record.type === "open") state = { ...record, parts: new Map(), length: 0 };
    if (state === undefined) break;
    apply(record, state);
    start = end + 1;
    state.length = start;
  }
  return state;
}

function apply(record: JournalRecord, state: JournalState): void {
  const { parts } = state;
  if (record.type === "boot") {
    state.boot = record.boot;
    for (const part of parts.values()) if (part.synced !== part.size) part.size = null;
  } else if (record.type === "begin") {
    const { from, range, of } = record;
    parts.set(record.part, { from, range, of, size: null, synced: 0 });
  } else if (record.type === "lost") {
    parts.delete(record.part);
  } else if (record.type !== "open") {
    const part = parts.get(record.part);
    if (part !== undefined && record.type === "end") part.size = record.size;
    if (part !== undefined && record.type === "synced") part.synced = record.bytes;
    if (part !== undefined && record.type === "moved") {
      part.from = record.from;
      part.of = record.of;
    }
  }
}

/** Only this program writes the journal: a complete line is also valid. */
function parseRecord(line: string): JournalRecord | undefined {
  try {
    const value: JournalRecord | null = JSON.parse(line);
    return typeof value === "object" && value !== null && "type" in value ? value : undefined;
  } catch {
    return undefined;
  }
}
