import type { FastifyRequest } from "fastify";
import { ServiceError } from "../../model/errors.ts";

/** What `refuseBlindRange` does, for the descriptions of routes. */
export const rangeRule =
  "A `Range` that does not begin at the first byte needs the `ETag` of the file as `If-Range` or `If-Match`, else it is refused (412), " +
  "but for the players of browsers: what has come of a stream is no part of the file.";

/** Players of browsers (Fetch Metadata §2.1): they keep nothing, and ask for parts only if the first response has said that it is a file. */
const players: ReadonlySet<unknown> = new Set(["video", "audio"]);

/**
 * Refuses to send a part of a medium to clients that do not say of what they have the rest. `wget` and `curl -C -` add the part to what they
 * have; if that is of a stream, or of another download, they would make one file of two. From the first byte on is no such part, and players
 * of browsers may seek.
 *
 * @throws ServiceError `precondition_failed` for a `Range` without `If-Range` (RFC 9110 §13.1.5) or `If-Match`
 */
export function refuseBlindRange({ headers }: Pick<FastifyRequest, "headers">): void {
  const { range, "if-range": ifRange, "if-match": ifMatch } = headers;
  if (range === undefined || ifRange !== undefined || ifMatch !== undefined) return;
  if (players.has(headers["sec-fetch-dest"])) return;
  if (!/^bytes=/i.test(range) || /^bytes=[ \t]*0+-/i.test(range)) return;
  const rule =
    "a part can only be had with the ETag of the file as If-Range; what has come of a stream that broke off is no part of it: begin anew";
  throw new ServiceError("precondition_failed", `${rule}; got Range: ${range.slice(0, 100)}`);
}
