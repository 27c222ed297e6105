import type { ServerResponse } from "node:http";
import cookie from "@fastify/cookie";
import type { FastifyInstance, FastifyRequest, RouteOptions } from "fastify";
import { WindowSums } from "../../async/window-sums.ts";
import type { AccessKey } from "../../model/access-key.ts";
import { ServiceError } from "../../model/errors.ts";
import type { KeyRing } from "../../keys/key-ring.ts";
import { secretOfBearer } from "../server/header-fields.ts";
import { problems } from "../responses/problem.ts";
import { onClosed } from "../responses/turns.ts";
import type { Origins } from "../server/origins.ts";
import { endResponse } from "../server/server.ts";
import type { RequestTurns } from "./request-turns.ts";

/** Who may use a route once there are keys: everybody, those with a key, those with an admin's key. */
export type Access = "open" | "key" | "admin";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Default: `"key"`. */
    access?: Access | undefined;
  }
  interface FastifyRequest {
    /** Whose key the request has; null while there are no keys, and on open routes. */
    caller: AccessKey | null;
  }
}

/** The cookie with the secret of a session. */
export const sessionCookie = "unreel_session";

/** A cookie without a secret, from which scripts of the page know that there is a session. */
export const signedInCookie = "unreel_signed_in";

/** Whose turns requests without a right key take; no key has this name. */
const nobody = "";

export interface AccessCheck {
  /**
   * Returns the key with this secret.
   *
   * @throws ServiceError `unauthorized` if there is none; `too_many_requests` after too many wrong ones.
   */
  findKey(request: FastifyRequest, secret: string): AccessKey;
  /** Ends the response if keys change so that `isAdmitted` is false before it has been sent: with `errorOf`, unless it has begun. */
  breakOffUnless(isAdmitted: () => boolean, response: ServerResponse, errorOf: () => ServiceError): void;
  /** Returns a promise that resolves if the key of a request that has done its work is removed: its response is then not broken off. */
  untilRemoved(response: ServerResponse): Promise<void>;
}

/**
 * Refuses requests without a key, for all routes that are registered after it, and documents that in their
 * schemas. The key comes as `Authorization: Bearer` (RFC 6750) or, unless a page of another origin sends it, in the cookie of
 * a session. Requests fail with ServiceError
 *
 * - `unauthorized` if there is no key, or a wrong one;
 * - `too_many_requests` instead, if the key is wrong and its client address has sent too many wrong ones;
 * - `forbidden` if the route is for admins and the key is not an admin's.
 *
 * They fail in `turns`, all as those of one owner: a thousand at once would hold up the others for a quarter of a second.
 *
 * While there are no keys at all, every request passes. When a key is removed, what is still being sent to it is broken
 * off, and what has not begun is refused, which pages of `origins` may read; open routes that check a key themselves call `breakOffUnless`.
 *
 * @param accessOf Returns who may use the path of a request; undefined: those with a key.
 */
export function requireAccess(
  app: FastifyInstance,
  keys: KeyRing,
  origins: Origins,
  turns: Pick<RequestTurns, "add">,
  accessOf: (request: FastifyRequest) => Access | undefined,
): AccessCheck {
  const countWrong = createGuessLimit();
  const { breakOffUnless, untilRemoved } = breakOffOnRemoval(app, keys, origins);

  function checked(request: FastifyRequest, key: AccessKey | undefined): AccessKey {
    if (key !== undefined) return key;
    countWrong(request.contact.client);
    throw new ServiceError("unauthorized", keys.isEmpty ? "this service has no keys" : "the key is not valid");
  }

  function identify(request: FastifyRequest): AccessKey {
    const { cookie: cookies } = request.headers;
    const secret = secretOfBearer(request.headers);
    if (secret !== undefined) return checked(request, keys.find(secret));
    const session = cookies && !request.isFromAllowedOrigin && app.parseCookie(cookies)[sessionCookie];
    if (session) return checked(request, keys.findSession(session));
    throw new ServiceError("unauthorized", "a key is needed: Authorization: Bearer <key>");
  }

  app.register(cookie, { hook: false });
  app.decorateRequest("caller", null);
  app.addHook("onRoute", documentAccess);
  app.addHook("onRequest", (request, { raw: response }, done) => {
    const access = accessOf(request) ?? "key";
    if (access === "open" || keys.isEmpty) return done();
    try {
      const caller = identify(request);
      request.caller = caller;
      breakOffUnless(() => keys.admits(caller.hash), response, removedKeyError);
    } catch (error) {
      return turns.add(nobody, response, () => done(error as ServiceError));
    }
    if (access !== "admin" || request.caller.admin) return done();
    return done(new ServiceError("forbidden", "this needs the key of an admin"));
  });

  return { findKey: (request, secret) => checked(request, keys.find(secret)), breakOffUnless, untilRemoved };
}

/** Returns `breakOffUnless` and `untilRemoved` of an `AccessCheck`. */
function breakOffOnRemoval(
  app: FastifyInstance,
  keys: KeyRing,
  origins: Origins,
): Pick<AccessCheck, "breakOffUnless" | "untilRemoved"> {
  const inFlight = new Map<ServerResponse, readonly [isAdmitted: () => boolean, onRemoved: () => void]>();
  function notify(): void {
    for (const [response, [isAdmitted, onRemoved]] of inFlight) {
      if (!response.writableEnded && !isAdmitted()) onRemoved();
    }
  }
  // After the routes have subscribed: event streams end by themselves.
  let unsubscribe = () => {};
  app.addHook("onReady", async () => {
    unsubscribe = keys.subscribe(notify);
  });
  app.addHook("onClose", async () => unsubscribe());
  return {
    breakOffUnless(isAdmitted, response, errorOf) {
      // The client may have disconnected meanwhile.
      if (response.destroyed) return;
      const breakOff = () => endResponse(response, errorOf(), origins);
      inFlight.set(response, [isAdmitted, breakOff]);
      onClosed(response, () => inFlight.delete(response));
    },
    untilRemoved(response) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const [isAdmitted] = inFlight.get(response) ?? [];
      if (isAdmitted !== undefined) inFlight.set(response, [isAdmitted, resolve]);
      return promise;
    },
  };
}

/** The schemes of `securitySchemes` in the OpenAPI document. */
const security = [{ key: [] }, { session: [] }];

/** Adds to the route's schema what it needs, and how it fails without; those for admins say `forbidden` themselves. */
function documentAccess(route: RouteOptions): void {
  const { schema, config: { access = "key" } = {} } = route;
  if (schema?.response === undefined || schema.hide === true) return;
  if (access === "open") {
    route.schema = { ...schema, security: [] };
    return;
  }
  const response = { ...problems("unauthorized", "too_many_requests"), ...(schema.response as object) };
  route.schema = { ...schema, security, response };
}

function removedKeyError(): ServiceError {
  return new ServiceError("unauthorized", "the key was removed");
}

/** Wrong keys of one client that are answered within a minute. */
const maxWrong = 20;
const windowMs = 60_000;

/**
 * Returns a function that counts a wrong key of a client, undefined: one on this machine, to slow those who guess keys. It throws
 * ServiceError `too_many_requests` if the client has sent too many.
 *
 * @param nowMs A steady clock.
 */
export function createGuessLimit(nowMs = () => performance.now()) {
  const guesses = new WindowSums(windowMs);

  return (client = "this machine"): void => {
    const now = nowMs();
    const { sum: wrong, endsMs } = guesses.add(client, 1, now);
    if (wrong > maxWrong) throw tooManyError(endsMs - now);
  };
}

function tooManyError(waitMs: number): ServiceError {
  const rule = `this address has sent ${maxWrong} wrong keys within a minute`;
  return new ServiceError("too_many_requests", rule, { retryAfterS: waitMs / 1_000 });
}
