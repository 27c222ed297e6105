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
