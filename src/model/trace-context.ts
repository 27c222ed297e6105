/** W3C Trace Context, level 2 (https://www.w3.org/TR/trace-context-2/). */

/** The trace that a request belongs to, as its header fields say; empty if it has none. */
export interface TraceContext {
  traceparent?: string | undefined;
  /** What the systems that the request has passed say of the trace. */
  tracestate?: string | undefined;
}

/** Returns what is valid of these header fields: a `tracestate` counts only beside a valid `traceparent`. */
export function parseTraceContext({ traceparent: header, tracestate }: TraceContext): TraceContext {
  const traceparent = parseTraceparent(header);
  return traceparent === undefined ? {} : { traceparent, tracestate: parseTracestate(tracestate) };
}

const pattern = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/;

/** Sampled, and an id that is random: other flags have no meaning yet, and are not sent on (§3.2.2.5). */
const knownFlags = 0x03;

/** Returns a `traceparent` as version 00 has it; undefined if it is invalid, and then to be ignored. */
export function parseTraceparent(header: string | undefined): string | undefined {
  const [text, version, trace = "", parent = "", flags = ""] = pattern.exec(header ?? "") ?? [];
  if (text === undefined || version === "ff" || (version === "00" && text.length !== 55)) return undefined;
  if (isZero(trace) || isZero(parent)) return undefined;
  return `00-${trace}-${parent}-0${Number.parseInt(flags, 16) & knownFlags}`;
}

/** Keys have no capitals, values neither commas nor equals signs (§3.3.1.3). */
const listMember = /^[a-z\d][a-z\d_*/@-]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]$/;
const maxMembers = 32;
const maxLength = 512;
const longMember = 128;

/**
 * Returns the list without blanks between its members, undefined if it is empty or invalid. If it is too long, long members are left
 * out, then those at its end (§3.3.1.5).
 */
function parseTracestate(header = ""): string | undefined {
  // An expression for blanks at the end would take quadratic time.
  const members = header
    .split(",")
    .map((member) => member.trim())
    .filter((member) => member !== "");
  if (members.length > maxMembers || !members.every((member) => listMember.test(member))) return undefined;
  const isShort = members.join(",").length <= maxLength;
  const kept = isShort ? members : members.filter(({ length }) => length <= longMember);
  while (kept.join(",").length > maxLength) kept.pop();
  return kept.join(",") || undefined;
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
