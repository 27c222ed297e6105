/** W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context/#traceparent-header). */

const pattern = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/;

/** Returns a `traceparent` as version 00 has it; undefined if it is invalid, and then to be ignored. */
export function parseTraceparent(header: string | undefined): string | undefined {
  const [text, version, trace = "", parent = "", flags] = pattern.exec(header ?? "") ?? [];
  if (text === undefined || version === "ff" || (version === "00" && text.length !== 55)) return undefined;
  return isZero(trace) || isZero(parent) ? undefined : `00-${trace}-${parent}-${flags}`;
}

/** Returns the id of the trace of a valid `traceparent`. */
export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}

/** Returns the `traceparent` of a request that is sent because of one with this valid one: another parent in the same trace. */
export function nextTraceparent(traceparent: string): string {
  const id = crypto.getRandomValues(new Uint8Array(8));
  // Not all zeros.
  id[0] = (id[0] ?? 0) | 1;
  const parent = Array.from(id, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `00-${traceIdOf(traceparent)}-${parent}-${traceparent.slice(-2)}`;
}

function isZero(id: string): boolean {
  return /^0+$/.test(id);
}
