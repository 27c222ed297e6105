import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import type { FastifyReply, FastifyRequest } from "fastify";
import { sessionSecretOf } from "../../keys/secrets.ts";
import { ServiceError } from "../../model/errors.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { type AccessCheck, sessionCookie, signedInCookie } from "../access/access.ts";
import { readJsonBodies } from "../server/json.ts";
import { noContent } from "../responses/empty.ts";
import { bodyErrors, problems } from "../responses/problem.ts";

/** How long a browser keeps the cookie. */
const maxAgeS = 30 * 86_400;

const KeyOwner = Type.Object(
  { name: Type.String(), admin: Type.Boolean() },
  { title: "KeyOwner", description: "whose key it is" },
);

const getSchema = {
  operationId: "getSession",
  summary: "Whose key the request has",
  tags: ["session"],
  response: { 200: KeyOwner, ...problems("not_found", "not_acceptable") },
};

const startSchema = {
  operationId: "startSession",
  summary: "Exchange a key for the cookie of a session",
  description: "For browsers: the cookie stands for the key for 30 days, or until the key is removed.",
  tags: ["session"],
  body: Type.Object({ key: Type.String({ description: "the key" }) }),
  response: { 200: KeyOwner, ...problems("unauthorized", ...bodyErrors, "too_many_requests") },
};

const endSchema = {
  operationId: "endSession",
  summary: "Remove the cookie of a session",
  description: "Removing the key ends all of its sessions, on all browsers.",
  tags: ["session"],
  response: {
    204: noContent("the browser drops the cookie"),
    ...problems("cross_site", "not_acceptable"),
  },
};

/** Lets a browser exchange a key for a cookie that scripts cannot read. */
export const sessionRoutes: FastifyPluginAsyncTypebox<{ access: AccessCheck }> = async (app, { access }) => {
  app.addHook("onRequest", requireAcceptJson);
  readJsonBodies(app);
  const config = { access: "open" } as const;

  app.get("/session", { schema: getSchema }, async ({ caller }, reply) => {
    if (caller === null) throw new ServiceError("not_found", "this service has no keys");
    reply.header("cache-control", "no-store");
    return { name: caller.name, admin: caller.admin };
  });

  app.post("/session", { config, schema: startSchema }, async (request, reply) => {
    const { key: secret } = request.body;
    const { name, admin } = access.findKey(request, secret);
    setCookies(request, reply, sessionSecretOf(secret), maxAgeS);
    reply.header("cache-control", "no-store");
    return { name, admin };
  });

  app.delete("/session", { config, schema: endSchema }, async (request, reply) => {
    setCookies(request, reply, "", 0);
    return reply.code(204).send();
  });
};

/**
 * Without `path`, which makes it the folder of `session` (RFC 6265 §5.1.4): the service cannot know below which path
 * a proxy has it.
 */
function setCookies({ headers, contact }: FastifyRequest, reply: FastifyReply, secret: string, maxAge: number): void {
  const secure = contact.isHttps || headers.origin?.startsWith("https:") === true;
  const options = { sameSite: "strict", secure, maxAge } as const;
  reply.setCookie(sessionCookie, secret, { ...options, httpOnly: true });
  reply.setCookie(signedInCookie, secret && "1", options);
}
