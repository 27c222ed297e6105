import type { IncomingHttpHeaders } from "node:http";

/**
 * Counts the header lines of that name, in lower case, of which Node keeps the first or joins all; `rawHeaders` has names and
 * values in turn.
 */
export function countLines(rawHeaders: readonly string[], name: string): number {
  let lines = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const text = rawHeaders[i];
    if (text?.length === name.length && text.toLowerCase() === name) lines++;
  }
  return lines;
}

/** Returns the key in `Authorization: Bearer` (RFC 6750), which browsers never send by themselves; undefined if there is none. */
export function secretOfBearer({ authorization = "" }: IncomingHttpHeaders): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}
