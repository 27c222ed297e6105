import type { FastifyInstance, FastifyRequest } from "fastify";
import sjson from "secure-json-parse";
import { ServiceError } from "../../model/errors.ts";
import { createValueCount } from "../../model/value-count.ts";
import { createTurns, longJson, untilClosed } from "../responses/turns.ts";

/** Makes the app ignore request bodies, so that routes without one accept any. */
export function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => {
    payload.resume();
    done(null);
  });
}

/** Of a long body. It is parsed and validated in one turn, which takes tens of milliseconds for this many. */
const maxValues = 10_000;

/**
 * Makes the routes of this plug-in accept bodies of type `application/json` only. Long bodies are read in turns. Requests fail with
 * ServiceError
 * - `unsupported_media_type` for another type or charset, and for a content coding;
 * - `payload_too_large` for a long body of over 10,000 values;
 * - `invalid_request` for a body that is empty, is not JSON (with the position of the error), or has a member `__proto__` or
 *   `constructor` that could pollute a prototype.
 */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) => done(null, body));
  const turns = createTurns();
  app.addHook("preValidation", async (request, reply) => {
    const { body, headers } = request;
    if (typeof body !== "string") return;
    // What follows, up to the first wait of the handler, happens in the same turn of the event loop.
    if (body.length > longJson) {
      await turns.wait(request, untilClosed(reply));
      checkValues(body);
    }
    request.body = parseJson(headers, body);
  });
  app.addContentTypeParser("*", ({ headers }: FastifyRequest, _payload, done) => {
    const type = headers["content-type"];
    done(unsupportedError(type === undefined ? "no Content-Type" : `Content-Type: ${type.slice(0, 100)}`));
  });
}

function checkValues(body: string): void {
  const values = createValueCount();
  values.add(Buffer.from(body));
  if (values.count <= maxValues) return;
  throw new ServiceError("payload_too_large", `the body has ${values.count} values, the limit is ${maxValues}`);
}

function parseJson(headers: FastifyRequest["headers"], body: string): unknown {
  const { "content-type": type = "", "content-encoding": coding = "identity" } = headers;
  const charset = type.includes(";") ? /;\s*charset="?([^";\s]*)/i.exec(type)?.[1] : undefined;
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) throw unsupportedError(`charset=${charset.slice(0, 40)}`);
  if (coding !== "identity") throw unsupportedError(`Content-Encoding: ${coding.slice(0, 40)}`);
  if (body.length === 0) {
    throw new ServiceError("invalid_request", "the body is empty; it must be a JSON object");
  }
  // The decoder replaces bytes that are not UTF-8 with this character.
  if (body.includes("\ufffd")) {
    throw new ServiceError("invalid_request", "the body is not UTF-8, or contains U+FFFD");
  }
  try {
    return sjson.parse(body);
  } catch (cause) {
    throw new ServiceError("invalid_request", reasonOf(cause), { cause });
  }
}

function unsupportedError(got: string): ServiceError {
  const rule = "the body must be application/json in UTF-8, without a content coding";
  return new ServiceError("unsupported_media_type", `${rule}; got ${got}`);
}

function reasonOf(error: unknown): string {
  const { message } = error as SyntaxError;
  return message.includes("forbidden prototype")
    ? "the body has a member named __proto__ or constructor, which is not allowed"
    : `the body is not JSON: ${message.slice(0, 200)}`;
}
