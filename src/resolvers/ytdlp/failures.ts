import { type Static, Type } from "@sinclair/typebox";
import { type ErrorCode, ServiceError } from "../../model/errors.ts";
import { isRetryableStatus } from "../../net/upstream-error.ts";

/** How an extraction failed: see `_describe` in `python/extraction.py`. */
export const Failure = Type.Object({
  /** Names of the classes of the error and of what caused it, outermost first. */
  errors: Type.Array(Type.String()),
  /** Status of the HTTP response that caused it. */
  status: Type.Union([Type.Integer(), Type.Null()]),
  /** yt-dlp says that the site or the page is at fault, not its extractor. */
  expected: Type.Boolean(),
  /** May quote the site: it is only searched for words, never shown. */
  message: Type.String(),
});
export type Failure = Static<typeof Failure>;

/** Texts by which extractors say why there is no medium; the first that matches counts. */
const reasons: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [/\bdrm\b/i, "drm_protected", "the medium is protected with DRM"],
  [
    /geo[- ]?(restrict|block)|(in|from|to|for) (your|this|the) (country|region|location|territory)|only available (in|to) (certain|some|the|your)|outside (of )?(the|your)/i,
    "geo_restricted",
    "the site does not serve it in this country",
  ],
  [
    /log(ged)?[- ]?in\b|login|sign(ed)?[- ]in|registered users|private (video|content|account|playlist)|(is|are|has been|was) (set to )?private|password|cookies|not a (ro)?bot|captcha|(confirm|verify) (your )?age|age[- ]?(restrict|gat|verif|limit)|inappropriate for some|subscri(ber|ption)|premium|members?[- ]only|(your|an) account|account (is )?(needed|required)/i,
    "login_required",
    "the site demands a login",
  ],
  [
    /is_upcoming|premieres? in|will begin|not (currently )?live|is offline|has not (yet )?(started|begun)|not yet (started|begun)|live event (will|has)/i,
    "live_stream",
    "the stream is not live at the moment",
  ],
  [
    /unavailable|not available|no longer|no video|not found|does(n't| not) exist|deleted|removed|expired|no (media|formats)/i,
    "no_media",
    "the site says that there is no medium: it was removed, or is not available",
  ],
];

/** The site says that there is no medium: it was removed, for example. */
export class MediumGoneError extends ServiceError {}

/** Returns the error of a failed extraction; `what` names it in the message. */
export function extractionError(failure: Failure, what: string): ServiceError {
  const { errors, status, expected, message } = failure;
  const has = (...names: readonly string[]) => errors.some((name) => names.includes(name));
  const fail = (code: ErrorCode, rule: string) => new ServiceError(code, `${what}: ${rule}`);
  if (has("SetUpError"))
    return new ServiceError("internal", `${what}: its process could not be set up`, { cause: new Error(message) });
  if (has("AnswerTooLarge")) return answerTooLargeError(what);
  if (has("MemoryError")) return fail("upstream_invalid", "it used more memory than allowed");
  if (has("UnsupportedError")) return fail("no_media", "yt-dlp finds no medium on the page");
  if (has("GeoRestrictedError")) return fail("geo_restricted", "the site does not serve it in this country");
  if (has("UserNotLive")) return fail("live_stream", "the stream is not live at the moment");
  const reason = expected ? findReason([message]) : undefined;
  if (reason !== undefined && reason.code !== "no_media") return fail(reason.code, reason.text);
  if (has("HTTPError") && status !== null) {
    return new ServiceError("upstream_status", `${what}: HTTP status ${status}`, {
      retryable: isRetryableStatus(status),
      upstreamStatus: status,
    });
  }
  if (has("TimeoutError", "timeout", "ConnectTimeout", "ReadTimeout"))
    return fail("upstream_timeout", "the site did not respond in time");
  if (has("SSLError", "CertificateVerifyError")) return fail("upstream_unreachable", "TLS failed");
  if (has("TransportError", "IncompleteRead", "ProxyError"))
    return fail("upstream_unreachable", "the connection failed");
  if (reason !== undefined) return new MediumGoneError(reason.code, `${what}: ${reason.text}`);
  if (expected) return fail("no_media", "yt-dlp finds no medium on the page");
  const rule = `yt-dlp's extractor failed (${nameOf(errors)}); update yt-dlp, as the site may have changed`;
  return fail("upstream_invalid", rule);
}

/** Returns the error of an extraction whose process was ended by a signal of another program. */
export function endedBySignalError(signal: number, what: string): ServiceError {
  const rule =
    signal === sigXCpu ? "it used more processor time than allowed" : `its process was ended by signal ${signal}`;
  return new ServiceError("upstream_invalid", `${what}: ${rule}`);
}

const sigXCpu = 24;

/** Returns the error of an info dict that is larger than the service reads. */
export function answerTooLargeError(what: string): ServiceError {
  return new ServiceError("upstream_invalid", `${what}: the info dict is too large`);
}

/**
 * Returns why an info dict has no formats, as a task's error: yt-dlp says so only in warnings if it knows
 * the rest. Returns undefined if it gives no reason. `info` is the video's dict, with the `_warnings` of the extraction.
 */
export function findMissingFormatsError(info: unknown, what: string): ServiceError | undefined {
  if (typeof info !== "object" || info === null) return undefined;
  const fields: Readonly<Record<string, unknown>> = { ...info };
  const fail = (code: ErrorCode, rule: string) => new ServiceError(code, `${what}: ${rule}`);
  if (fields["_has_drm"] === true) return fail("drm_protected", "the medium is protected with DRM");
  if (fields["live_status"] === "is_upcoming") return fail("live_stream", "the stream has not begun");
  const warnings = Array.isArray(fields["_warnings"]) ? fields["_warnings"] : [];
  const reason = findReason(warnings.filter((warning) => typeof warning === "string"));
  return reason && fail(reason.code, reason.text);
}

function findReason(messages: readonly string[]): { code: ErrorCode; text: string } | undefined {
  const [, code, text] = reasons.find(([pattern]) => messages.some((message) => pattern.test(message))) ?? [];
  return code && text !== undefined ? { code, text } : undefined;
}

/** Only words that Python allows as names: the class is code, but its text may not be. */
function nameOf(errors: readonly string[]): string {
  const name = errors.find((each) => each !== "DownloadError") ?? "";
  return /^\w{1,60}$/.test(name) ? name : "an error";
}
