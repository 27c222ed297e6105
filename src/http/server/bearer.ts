import type { IncomingHttpHeaders } from "node:http";

/** Returns the key in `Authorization: Bearer` (RFC 6750), which browsers never send by themselves; undefined if there is none. */
export function secretOfBearer({ authorization = "" }: IncomingHttpHeaders): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}
