import type { ErrorCode } from "../model/errors.ts";
import type { TaskFailure } from "../model/progress.ts";

/** What no request of the page and no task fails with. */
type UnseenCode =
  | "method_not_allowed"
  | "not_acceptable"
  | "precondition_failed"
  | "range_not_satisfiable"
  | "unsupported_media_type"
  | "expectation_failed"
  | "idempotency_mismatch";

type SeenCode = Exclude<ErrorCode, UnseenCode> | "connection_lost";

/** What each code means to a person who looks at the page. */
const sentences: Record<SeenCode, string> = {
  invalid_request: "The service did not understand this request.",
  invalid_url: "This is not the address of a web page.",
  unauthorized: "This key is not valid.",
  quota_exceeded: "Your key has reached one of its limits.",
  forbidden: "This needs the key of an admin.",
  cross_site: "The service refuses requests from other sites.",
  not_found: "This does not exist any more.",
  request_timeout: "The request took too long.",
  conflict: "The state has changed, so this is no longer possible.",
  file_removed: "The file was removed.",
  payload_too_large: "The request is too large.",
  misdirected_request: "The service does not respond under this name.",
  address_blocked: "This address is in a network that the service may not reach.",
  no_media: "There is no video on this page to download.",
  format_unavailable: "Nothing there fits what was chosen.",
  drm_protected: "This video is protected by DRM, so it cannot be downloaded.",
  login_required: "The site requires a login.",
  geo_restricted: "The site does not show this in the country of the service.",
  playlist: "This is a list: choose what to download of it.",
  entries_failed: "Some entries of this list were not downloaded.",
  live_stream: "This live stream has not begun, or it cannot be recorded.",
  too_large: "The video is larger than the service allows.",
  too_many_requests: "There are too many requests at the moment.",
  headers_too_large: "The request is too large.",
  internal: "Something went wrong in the service.",
  upstream_unreachable: "The site cannot be reached.",
  upstream_status: "The site responded with an error.",
  upstream_invalid: "The site sent something that cannot be read.",
  unavailable: "The service is not available at the moment.",
  upstream_timeout: "The site took too long to respond.",
  disk_full: "The disk of the service is full.",
  connection_lost: "The service does not respond.",
};

/** What is said instead of `upstream_status` of the statuses that say more. */
const statusSentences: Record<string, string> = {
  403: "The site refused the request.",
  404: "The site says that there is no such page or file.",
  410: "The site says that this page or file is gone.",
  429: "The site says that it has had too many requests.",
};

/** Something else is to be given then, so another try is no question. */
const corrections: ReadonlySet<string> = new Set(["unauthorized", "invalid_url", "playlist"]);

/** Returns what a failure means, and whether another try may help, as two sentences. */
export function describeFailure({ code, message, retryable }: TaskFailure): string {
  const sentence = describeReason({ code, message });
  if (code === "live_stream") return `${sentence} Trying again may help once it has begun.`;
  // What may help an entry, such as free space, is said there.
  if (corrections.has(code) || (code === "entries_failed" && !retryable)) return sentence;
  const isFull = code === "disk_full" || code === "quota_exceeded";
  const otherwise = isFull ? "may help once files are deleted" : "will not help";
  return `${sentence} Trying again ${retryable ? "may help" : otherwise}.`;
}

/** Returns what a failure means, as one sentence. */
export function describeReason({ code, message }: Pick<TaskFailure, "code" | "message">): string {
  const known = code === "upstream_status" ? describeStatus(message) : undefined;
  return known ?? (Object.hasOwn(sentences, code) ? sentences[code as SeenCode] : sentences.internal);
}

/** Returns what the site's status means. Only the end of the message holds it: "GET … failed with status 404". */
function describeStatus(message: string): string | undefined {
  const status = / status (\d{3})$/.exec(message)?.[1];
  if (status === undefined)
    return message.includes("asked for a pause") ? "The site has asked for a pause." : undefined;
  const sentence = statusSentences[status] ?? sentences.upstream_status;
  return sentence.replace(/\.$/, ` (status ${status}).`);
}

const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

/** Returns a size in its largest unit, "15.3 MB". `like` gives the size whose unit is taken; default `bytes`. */
export function formatBytes(bytes: number, like = bytes): string {
  return sizeFormat(like).format(bytes / 1_000 ** exponentOf(like));
}

/** Returns how much of a size there is, "3.3 of 15.3 MB". */
export function formatPartOf(bytes: number, total: number): string {
  const [number = ""] = formatBytes(bytes, total).split(/\s/);
  return `${number} of ${formatBytes(total)}`;
}

/** Returns a speed in bytes per second, "553 kB/s". */
export function formatSpeed(bytesPerSecond: number): string {
  return `${formatBytes(Math.max(0, Math.round(bytesPerSecond)))}/s`;
}

/** Returns how long something plays, "3:05" or "1:02:03". */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, i) => (i === 0 ? `${part}` : `${part}`.padStart(2, "0"))).join(":");
}

/** Returns a place in a film, to the millisecond: "1:20" or "1:20.5". */
export function formatPlace(seconds: number): string {
  const ms = Math.round(seconds * 1000);
  const fraction = ms % 1000 === 0 ? "" : `.${`${ms % 1000}`.padStart(3, "0").replace(/0+$/, "")}`;
  return `${formatDuration(Math.floor(ms / 1000))}${fraction}`;
}

/** Returns a time to wait in its largest unit, "22 s", "3 min" or "2 h". */
export function formatWait(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return `${whole}\u00a0s`;
  if (whole < 90 * 60) return `${Math.round(whole / 60)}\u00a0min`;
  return `${Math.round(whole / 3600)}\u00a0h`;
}

/** Returns an RFC 3339 time as this browser writes times, with the date unless it is today. */
export function formatTime(time: string): string {
  const date = new Date(time);
  const isToday = date.toDateString() === new Date().toDateString();
  return (isToday ? clock : calendar).format(date);
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const calendar = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function exponentOf(bytes: number): number {
  const exponent = Math.floor(Math.log10(Math.max(1, bytes)) / 3);
  return Math.min(exponent, units.length - 1);
}

function sizeFormat(bytes: number): Intl.NumberFormat {
  const exponent = exponentOf(bytes);
  return new Intl.NumberFormat("en", {
    style: "unit",
    unit: units[exponent] ?? "byte",
    // Whole kilobytes, one decimal above.
    maximumFractionDigits: exponent < 2 ? 0 : 1,
  });
}
