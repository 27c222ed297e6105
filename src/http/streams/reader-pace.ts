import type { ServerResponse } from "node:http";
import { onClosed } from "../responses/turns.ts";

/** Looks of all readers of an owner's streams within a second: each takes a few calls of the file system, for which all requests share four threads. */
const looksPerS = 1_000;

/** Returns how long a pause between two looks for more is that should be so long, milliseconds: longer while many readers look. */
export type PauseOf = (ms: number) => number;

/** Returns a function that counts a reader of an owner's streams until its response is closed. Readers of other owners do not slow it. */
export function paceReaders(): (owner: string, response: ServerResponse) => PauseOf {
  const readers = new Map<string, Set<ServerResponse>>();
  return (owner, response) => {
    const own = readers.getOrInsertComputed(owner, () => new Set());
    own.add(response);
    onClosed(response, () => {
      own.delete(response);
      if (own.size === 0 && readers.get(owner) === own) readers.delete(owner);
    });
    return (ms) => Math.max(ms, (own.size * 1_000) / looksPerS);
  };
}
