import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import sjson from "secure-json-parse";
import { ServiceError } from "../errors.ts";

/**
 * Makes the app read bodies of type `application/json` and no others.
 *
 * @throws ServiceError (to the client) `invalid_request` for a body that is empty, is not JSON (with
 * the place where it goes wrong) or has a member `__proto__`, which no client means well.
 */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    "application/json",
    { parseAs: "string" },
    async (_request: FastifyRequest, body: string) => {
      if (body.length === 0) {
        throw new ServiceError("invalid_request", "the body is empty, a JSON object is needed");
      }
      try {
        return sjson.parse(body);
      } catch (cause) {
        throw new ServiceError("invalid_request", reasonOf(cause), { cause });
      }
    },
  );
}

function reasonOf(error: unknown): string {
  const { message } = error as SyntaxError;
  return message.includes("forbidden prototype")
    ? "the body has a member named __proto__ or constructor, which is not allowed"
    : `the body is not JSON: ${message.slice(0, 200)}`;
}

/**
 * Hook of routes that answer with JSON: refuses a client that does not accept it (RFC 9110 §12.5.1)
 * and keeps browsers from guessing another type.
 *
 * @throws ServiceError `not_acceptable`.
 */
export async function answerJson(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header("x-content-type-options", "nosniff");
  const { accept } = request.headers;
  if (accept === undefined || accept === "*/*" || accept === "application/json") return;
  if (request.accepts().type(["application/json"]) !== false) return;
  throw new ServiceError(
    "not_acceptable",
    `the answer is application/json, which "Accept: ${accept.slice(0, 100)}" does not allow`,
  );
}
