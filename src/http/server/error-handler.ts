import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction } from "fastify";
import { type ErrorCode, errorCodes, ServiceError, statusOf } from "../../model/errors.ts";
import { requestIdHeader } from "../responses/every-response.ts";
import { problemHeaders, problemOf } from "../responses/problem.ts";
import { askedOf } from "./observe-requests.ts";

declare module "fastify" {
  interface FastifyReply {
    /** Code of the problem document that it responds with; null for other responses. */
    errorCode: ErrorCode | null;
  }
}

/** Responds to every error with a problem document; errors of this service are logged. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  // The client has disconnected, so the request was aborted: not a failure, and no response is read.
  if (request.raw.destroyed && reply.raw.destroyed) return void reply.hijack();
  const known = error instanceof ServiceError ? error : serviceErrorOf(error, request);
  const { code, message } = known;
  // It may be the only line about the request: those of `/health/` have no other.
  const asked = askedOf(request);
  if (code === "internal") request.log.error({ ...asked, err: error }, "request failed");
  else if (statusOf(known) >= 500) request.log.warn({ ...asked, code, detail: message }, "request failed");
  sendProblem(reply, known);
}

/**
 * Makes requests for paths without a route fail with `not_found`, whatever their method and body are;
 * `hint` ends the message.
 */
export function refuseUnknownPaths(app: FastifyInstance, hint: string): void {
  const errorOf = ({ url }: FastifyRequest): ServiceError => {
    const [path = ""] = url.split("?", 1);
    return new ServiceError("not_found", `no route ${path.slice(0, 200)}${hint}`);
  };
  // Before the body is read.
  app.addHook("onRequest", (request, _reply, done) => {
    done(request.is404 ? errorOf(request) : undefined);
  });
  // For routes that find nothing.
  app.setNotFoundHandler((request, reply) => sendProblem(reply, errorOf(request)));
}

/**
 * Hook that fails with ServiceError `expectation_failed` if the client expects anything but `100-continue`
 * (RFC 9110 §10.1.1).
 */
export function refuseExpectations(
  { headers: { expect } }: FastifyRequest,
  _reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  if (expect === undefined || /^100-continue$/i.test(expect)) return done();
  const rule = `the header Expect must be 100-continue, got ${JSON.stringify(expect.slice(0, 100))}`;
  return done(new ServiceError("expectation_failed", rule));
}

/**
 * Hook that refuses a request whose end is ambiguous, with ServiceError `invalid_request`, and closes the connection: its version is not
 * HTTP/1.0 or 1.1, it has another transfer coding than `chunked`, or any in HTTP/1.0 (RFC 9112 §6.1).
 */
export function refuseAmbiguousFraming(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  const { httpVersion, headers } = raw;
  const { "transfer-encoding": coding } = headers;
  const isKnown = httpVersion === "1.1" || (httpVersion === "1.0" && coding === undefined);
  if (isKnown && (coding === undefined || coding.toLowerCase() === "chunked")) return done();
  reply.header("connection", "close");
  const got = coding === undefined ? "" : ` and Transfer-Encoding: ${JSON.stringify(coding.slice(0, 100))}`;
  const rule = "a request must be HTTP/1.1, without a transfer coding or with chunked, or HTTP/1.0 without one";
  return done(new ServiceError("invalid_request", `${rule}; got HTTP/${httpVersion}${got}`));
}

function sendProblem(reply: FastifyReply, error: ServiceError): void {
  const problem = problemOf(error);
  reply.errorCode = problem.code;
  // No hook has set its id if the path could not be decoded.
  reply.headers({ ...problemHeaders(error), [requestIdHeader]: reply.request.id });
  reply.code(problem.status).send(problem);
}

/** Converts Fastify's own errors; any other one is `internal`. */
function serviceErrorOf(error: unknown, { headers, routeOptions }: FastifyRequest): ServiceError {
  const { code = "", statusCode = 500, message } = error as Partial<FastifyError>;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    return new ServiceError("payload_too_large", `the body is over ${(routeOptions.bodyLimit ?? 0) / 1024} KiB`, {
      cause: error,
    });
  }
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
    const got = JSON.stringify(headers["content-type"]?.slice(0, 100));
    const rule = `the header Content-Type must be one media type, such as application/json, got ${got}`;
    return new ServiceError("unsupported_media_type", rule, { cause: error });
  }
  if (statusCode >= 400 && statusCode < 500) {
    return new ServiceError(codeOfStatus(statusCode), `the request was refused: ${message}`, {
      cause: error,
    });
  }
  return new ServiceError("internal", "internal error; see the service log", { cause: error });
}

function codeOfStatus(status: number): ErrorCode {
  const codes = Object.keys(errorCodes) as ErrorCode[];
  return codes.find((code) => errorCodes[code].status === status) ?? "invalid_request";
}
