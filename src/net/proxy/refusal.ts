import { ServiceError } from "../../model/errors.ts";
import { toUpstreamError } from "../upstream-error.ts";

/** A response of the proxy itself; it closes the connection. */
export interface Refusal {
  status: number;
  text: string;
  /** Fields besides those of every refusal. */
  fields?: Record<string, string>;
}

/** Returns the fields of a refusal. */
export function fieldsOf({ fields }: Refusal): Record<string, string> {
  return { ...fields, "content-type": "text/plain; charset=utf-8", connection: "close" };
}

/** Returns the error of a connection or request that failed; `what` names it. */
export function toProxyError(error: unknown, what: string, idleTimeoutMs: number): ServiceError {
  const failure = toUpstreamError(error, what, idleTimeoutMs);
  if (failure instanceof ServiceError) return failure;
  return new ServiceError("internal", `${what}: the proxy failed`, { cause: error });
}

/** Returns the proxy's response for an error: 403 if the address is blocked, else 504 or 502. */
export function refusalOf({ code, message }: ServiceError): Refusal {
  if (code === "address_blocked") return { status: 403, text: message };
  return { status: code === "upstream_timeout" ? 504 : 502, text: message };
}
