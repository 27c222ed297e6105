import type { FastifyRequest } from "fastify";
import { ServiceError } from "../../model/errors.ts";

/** What `refuseBlindRange` does, for the descriptions of routes. */
export const rangeRule =
  "A `Range` that does not begin at the first byte needs the `ETag` of the file as `If-Range` or `If-Match`, else it is refused (412), " +
  "but for players: what has come of a stream is no part of the file.";

/**
 * What only players send: they keep nothing, and seek only if the first response has said that it is a file. ffmpeg, and what is built on it
 * or GStreamer, ask for the titles of radio stations; television sets state their mode of transfer (DLNA); Apple's players name the session.
 */
const playerFields = ["icy-metadata", "transfermode.dlna.org", "x-playback-session-id"] as const;

/**
 * Refuses to send a part of a medium to clients that do not say of what they have the rest. `wget` and `curl -C -` add the part to what they
 * have; if that is of a stream, or of another download, they would make one file of two; `wget` would so even if the range were ignored, as
 * it drops from the whole what it has. From the first byte on is no such part, and players may seek.
 *
 * @throws ServiceError `precondition_failed` for a `Range` without `If-Range` (RFC 9110 §13.1.5) or `If-Match`
 */
export function refuseBlindRange({ headers }: Pick<FastifyRequest, "headers">): void {
  const { range, "if-range": ifRange, "if-match": ifMatch } = headers;
  if (range === undefined || ifRange !== undefined || ifMatch !== undefined) return;
  if (isPlayer(headers)) return;
  if (!/^bytes=/i.test(range) || /^bytes=[ \t]*0+-/i.test(range)) return;
  const rule =
    "a range needs the ETag of the file as If-Range; the bytes of a stream that broke off are not those of the file: request it from its start";
  throw new ServiceError("precondition_failed", `${rule}; got Range: ${range.slice(0, 100)}`);
}

function isPlayer(headers: FastifyRequest["headers"]): boolean {
  // In browsers (Fetch Metadata §2.1).
  const dest = headers["sec-fetch-dest"];
  return dest === "video" || dest === "audio" || playerFields.some((field) => headers[field] !== undefined);
}

/**
 * Whether a stream may be sent: HTTP/1.0 marks the end by closing the connection, and so half a film would look whole; `If-Match` names a file.
 * Others wait for the file, whose length is known.
 */
export function takesStream({ headers, raw }: Pick<FastifyRequest, "headers" | "raw">): boolean {
  return raw.httpVersion !== "1.0" && headers["if-match"] === undefined;
}
