import { type Static, Type } from "@sinclair/typebox";
import { withoutSecrets } from "../../model/access-key.ts";
import {
  type ErrorCode,
  errorCodes,
  type InputFault,
  type ServiceError,
  statedUpstream,
  statusesOf,
  statusOf,
} from "../../model/errors.ts";
import { upstreamStatus } from "../../model/progress.ts";
import { oneOf } from "../../model/schema.ts";
import { everyResponse } from "./every-response.ts";

/** Problem document (RFC 9457); `code` and `retryable` are this service's own members. */
export const Problem = Type.Object(
  {
    type: Type.String({ description: "urn:problem-type:unreel:<code>" }),
    title: Type.String({ description: "the code in words" }),
    status: Type.Integer({ description: "HTTP status" }),
    detail: Type.String({ description: "what was tried, the rule and the value" }),
    code: oneOf(Object.keys(errorCodes) as ErrorCode[], "what went wrong; a closed list"),
    retryable: Type.Boolean({ description: "whether the same request may succeed later" }),
    upstream_status: upstreamStatus,
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          pointer: Type.String({
            description: "JSON Pointer (RFC 6901) into body, query or headers",
          }),
          detail: Type.String(),
        }),
        { description: "the faults of an invalid input" },
      ),
    ),
  },
  { $id: "Problem", title: "Problem" },
);
export type Problem = Static<typeof Problem>;

export const problemMediaType = "application/problem+json";

/** `Retry-After` of `unavailable` errors that do not bring their own, seconds. */
const unavailableRetryAfterS = 5;

/** Returns the header fields that a response with the problem document of `error` has, whichever part sends it. */
export function problemHeaders(error: ServiceError): Record<string, string> {
  const status = statusOf(error);
  const { retryAfterS = status === 503 ? unavailableRetryAfterS : undefined } = error;
  return {
    ...everyResponse,
    "content-type": problemMediaType,
    ...(retryAfterS !== undefined && { "retry-after": `${Math.max(1, Math.ceil(retryAfterS))}` }),
    // RFC 9110 §11.6.1, RFC 6750 §3.
    ...(status === 401 && { "www-authenticate": "Bearer" }),
  };
}

/** Returns the problem document that clients get for `error`. */
export function problemOf(error: ServiceError): Problem {
  const { title } = errorCodes[error.code];
  return {
    type: `urn:problem-type:unreel:${error.code}`,
    title,
    status: statusOf(error),
    detail: withoutSecrets(error.message),
    code: error.code,
    retryable: error.retryable,
    ...statedUpstream(error),
    ...(error.faults.length > 0 && { errors: error.faults.map(toShown) }),
  };
}

function toShown({ pointer, detail }: InputFault): InputFault {
  return { pointer, detail: withoutSecrets(detail) };
}

/** What a route that takes a JSON body can fail with, besides `invalid_request`. */
export const bodyErrors = ["cross_site", "not_acceptable", "payload_too_large", "unsupported_media_type"] as const;

/**
 * Returns the response schemas, by status, of a route that can fail with these codes, and with
 * those of every route's check of the host.
 */
export function problems(...codes: ErrorCode[]): Record<number, object> {
  const all = new Set<ErrorCode>([...codes, "invalid_request", "misdirected_request"]);
  const byStatus = Map.groupBy(
    [...all].flatMap((code) => [...statusesOf(code)].map((status) => ({ code, status }))),
    ({ status }) => status,
  );
  return Object.fromEntries(
    [...byStatus].map(([status, named]) => [
      status,
      {
        description: named.map(({ code }) => `\`${code}\``).join(", "),
        content: { [problemMediaType]: { schema: Type.Ref("Problem#") } },
      },
    ]),
  );
}
