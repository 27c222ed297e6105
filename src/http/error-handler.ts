import type { Socket } from "node:net";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { type ErrorCode, errorCodes, ServiceError } from "../errors.ts";
import { problemMediaType, problemOf } from "./problem.ts";

/** Answers every error as a problem document; what is nobody's fault but ours goes to the log. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const known = error instanceof ServiceError ? error : serviceErrorOf(error);
  const { code, message } = known;
  if (code === "internal") request.log.error({ err: error }, "request failed");
  else if (errorCodes[code].status >= 500)
    request.log.warn({ code, detail: message }, "request failed");
  sendProblem(reply, known);
}

export function handleNotFound(request: FastifyRequest, reply: FastifyReply): void {
  const [path = ""] = request.url.split("?", 1);
  sendProblem(
    reply,
    new ServiceError("not_found", `there is nothing at ${path.slice(0, 200)}; see /docs`),
  );
}

/** Answers bytes that are no HTTP request, before a request exists (RFC 9112 §2.2), and hangs up. */
export function handleClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const [line, what] = clientErrors[error.code ?? ""] ?? [
    "400 Bad Request",
    "the bytes received are not an HTTP/1.1 request",
  ];
  const problem = problemOf(new ServiceError("invalid_request", what));
  const body = JSON.stringify({ ...problem, status: Number.parseInt(line, 10) });
  socket.end(
    `HTTP/1.1 ${line}\r\nConnection: close\r\nContent-Type: ${problemMediaType}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const clientErrors: Readonly<Record<string, [line: string, what: string]>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "the request line and headers together are over 16 KiB",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "the request did not arrive in time"],
};

function sendProblem(reply: FastifyReply, error: ServiceError): void {
  const problem = problemOf(error);
  const { retryAfterS = problem.status === 503 ? 5 : undefined } = error;
  if (retryAfterS !== undefined) {
    reply.header("retry-after", Math.max(1, Math.ceil(retryAfterS)));
  }
  reply.code(problem.status).type(problemMediaType).send(problem);
}

/** Fastify's own refusals, in this service's words. */
const refusals: Readonly<Record<string, [code: ErrorCode, detail: string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    "unsupported_media_type",
    "the body must be sent with Content-Type: application/json",
  ],
  FST_ERR_CTP_BODY_TOO_LARGE: ["payload_too_large", "the body is over 64 KiB"],
};

function serviceErrorOf(error: unknown): ServiceError {
  const { code = "", statusCode = 500, message } = error as Partial<FastifyError>;
  const refusal = refusals[code];
  if (refusal !== undefined) return new ServiceError(...refusal, { cause: error });
  if (statusCode >= 400 && statusCode < 500) {
    return new ServiceError(codeOfStatus(statusCode), `the request was refused: ${message}`, {
      cause: error,
    });
  }
  return new ServiceError("internal", "the service failed; its log says why", { cause: error });
}

function codeOfStatus(status: number): ErrorCode {
  const codes = Object.keys(errorCodes) as ErrorCode[];
  return codes.find((code) => errorCodes[code].status === status) ?? "invalid_request";
}
