import { errors } from "undici";
import { type ErrorCode, ServiceError } from "../errors.ts";
import { codeOf } from "./error-code.ts";

export interface UpstreamLimits {
  idleTimeoutMs: number;
  maxHeaderBytes: number;
}

/**
 * What went wrong on the way to a server, as ServiceError; `what` names the request. A ServiceError
 * comes out as it is, and so does an error without a code, which is a bug of ours.
 */
export function toUpstreamError(error: unknown, what: string, limits: UpstreamLimits): unknown {
  if (error instanceof ServiceError) return error;
  const fail = (as: ErrorCode, rule: string) =>
    new ServiceError(as, `${what}: ${rule}`, { cause: error });
  if (error instanceof errors.HTTPParserError) {
    return error.message.includes("Invalid EOF state")
      ? fail("upstream_unreachable", "the connection was lost within the answer")
      : fail("upstream_invalid", error.message);
  }
  const code = codeOf(error);
  switch (code) {
    case undefined:
      return error;
    case "UND_ERR_CONNECT_TIMEOUT":
      return fail("upstream_timeout", `no connection within ${limits.idleTimeoutMs} ms`);
    case "UND_ERR_HEADERS_TIMEOUT":
      return fail("upstream_timeout", `no answer within ${limits.idleTimeoutMs} ms`);
    case "UND_ERR_BODY_TIMEOUT":
      return fail("upstream_timeout", `no bytes for ${limits.idleTimeoutMs} ms`);
    case "UND_ERR_HEADERS_OVERFLOW":
      return fail(
        "upstream_invalid",
        `the answer's header is larger than ${limits.maxHeaderBytes} bytes`,
      );
    case "UND_ERR_DESTROYED":
    case "UND_ERR_CLOSED":
      return fail("unavailable", "the HTTP client is closed");
    default:
      return fail("upstream_unreachable", `the connection failed (${code})`);
  }
}
