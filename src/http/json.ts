import type { FastifyInstance, FastifyRequest } from "fastify";
import sjson from "secure-json-parse";
import { ServiceError } from "../errors.ts";

/** Makes the app pass over the body of any request: what needs none is not refused for having one. */
export function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => {
    payload.resume();
    done(null);
  });
}

/**
 * Makes the routes of this plug-in read bodies of type `application/json` and no others.
 *
 * @throws ServiceError (to the client) `unsupported_media_type` for another type, charset or a content
 * coding; `invalid_request` for a body that is empty, is not JSON (with the place where it goes wrong)
 * or has a member `__proto__`, which no client means well.
 */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>(
    "application/json",
    { parseAs: "string" },
    ({ headers }, body, done) => {
      try {
        done(null, parseJson(headers, body));
      } catch (error) {
        done(error as ServiceError);
      }
    },
  );
  app.addContentTypeParser("*", ({ headers }: FastifyRequest, _payload, done) => {
    done(unreadable(`Content-Type: ${headers["content-type"]?.slice(0, 100)}`));
  });
}

function parseJson(headers: FastifyRequest["headers"], body: string): unknown {
  const { "content-type": type = "", "content-encoding": coding = "identity" } = headers;
  const charset = type.includes(";") ? /;\s*charset="?([^";\s]*)/i.exec(type)?.[1] : undefined;
  if (charset !== undefined && !/^utf-?8$/i.test(charset))
    throw unreadable(`charset=${charset.slice(0, 40)}`);
  if (coding !== "identity") throw unreadable(`Content-Encoding: ${coding.slice(0, 40)}`);
  if (body.length === 0) {
    throw new ServiceError("invalid_request", "the body is empty, a JSON object is needed");
  }
  // What the decoder puts where bytes are not UTF-8.
  if (body.includes("\ufffd")) {
    throw new ServiceError("invalid_request", "the body is not UTF-8, or has U+FFFD in it");
  }
  try {
    return sjson.parse(body);
  } catch (cause) {
    throw new ServiceError("invalid_request", reasonOf(cause), { cause });
  }
}

function unreadable(got: string): ServiceError {
  const rule = "the body must be sent with Content-Type: application/json, in UTF-8, not encoded";
  return new ServiceError("unsupported_media_type", `${rule}; got ${got}`);
}

function reasonOf(error: unknown): string {
  const { message } = error as SyntaxError;
  return message.includes("forbidden prototype")
    ? "the body has a member named __proto__ or constructor, which is not allowed"
    : `the body is not JSON: ${message.slice(0, 200)}`;
}
