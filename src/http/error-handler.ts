import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { type ErrorCode, errorCodes, ServiceError } from "../errors.ts";
import { problemMediaType, problemOf, unavailableRetryAfterS } from "./problem.ts";

/** Responds to every error with a problem document; errors of this service are logged. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  // The client has disconnected, so the request was aborted: not a failure, and no one reads a response.
  if (request.raw.destroyed && reply.raw.destroyed) return void reply.hijack();
  const known = error instanceof ServiceError ? error : serviceErrorOf(error);
  const { code, message } = known;
  if (code === "internal") request.log.error({ err: error }, "request failed");
  else if (errorCodes[code].status >= 500)
    request.log.warn({ code, detail: message }, "request failed");
  sendProblem(reply, known);
}

/** Returns the handler of paths without a route; `hint` ends the message. */
export function createNotFoundHandler(hint: string) {
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const [path = ""] = request.url.split("?", 1);
    sendProblem(reply, new ServiceError("not_found", `no route ${path.slice(0, 200)}${hint}`));
  };
}

function sendProblem(reply: FastifyReply, error: ServiceError): void {
  const problem = problemOf(error);
  const { retryAfterS = problem.status === 503 ? unavailableRetryAfterS : undefined } = error;
  if (retryAfterS !== undefined) {
    reply.header("retry-after", Math.max(1, Math.ceil(retryAfterS)));
  }
  reply.code(problem.status).type(problemMediaType).send(problem);
}

/** Converts Fastify's own errors; any other one is `internal`. */
function serviceErrorOf(error: unknown): ServiceError {
  const { code = "", statusCode = 500, message } = error as Partial<FastifyError>;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    return new ServiceError("payload_too_large", "the body is over 64 KiB", { cause: error });
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
