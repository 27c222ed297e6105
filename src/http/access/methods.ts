import createRouter from "find-my-way";
import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import { redirectOverSlash } from "../responses/empty.ts";
import type { Access } from "./access.ts";

export interface Methods {
  /** Returns who may use the path of a request, whatever its method is; undefined: not stated, or there is no such path. */
  accessOf(request: FastifyRequest): Access | undefined;
  /** Refuses the methods that no route has; call it before the first route and before other paths are refused. */
  refuseUnknown(): void;
  /** Refuses the methods of other routes; call it after the last route. */
  refuseOthers(): void;
}

interface KnownPath {
  access: Access | undefined;
  /** The value of its `Allow`. */
  allow: string;
}

/**
 * Records the paths of all routes, to refuse the methods that a path does not have: 405 with `Allow` (RFC 9110 §15.5.6), for OPTIONS 204
 * with `Allow`. Each path also has a redirect from the one with a slash more or less at its end.
 *
 * Methods that no route has get no routes: with one for each that Node knows, it took 1.4 times as long to build an app.
 *
 * @param maxParamLength That of the app's own router.
 */
export function registerMethods(app: FastifyInstance, maxParamLength: number): Methods {
  const accessByPath = new Map<string, Access | undefined>();
  /** Those that some route has. */
  const used = new Set<string>();
  app.addHook("onRoute", ({ url, method, config }) => {
    accessByPath.set(url, config?.access);
    for (const each of [method].flat()) used.add(each);
  });
  const router = createRouter({ maxParamLength });
  const find = ({ url }: FastifyRequest) => router.find("GET", url)?.store as KnownPath | undefined;

  return {
    accessOf: (request) => (request.is404 ? find(request)?.access : request.routeOptions.config.access),

    refuseUnknown() {
      app.addHook("onRequest", (request, reply, done) => {
        const path = request.is404 ? find(request) : undefined;
        if (path === undefined) done();
        else refuse(path, request, reply, done);
      });
    },

    refuseOthers() {
      // The routes that this adds have all of these.
      const methods = [...used];
      const paths = [...accessByPath];
      /** What the routes for all other paths below a folder begin with. */
      const rests = paths.filter(([url]) => url.endsWith("*")).map(([url]) => url.slice(0, -1));
      for (const [url, access] of paths) {
        const own = methods.filter((method) => app.hasRoute({ method, url }));
        const path = { access, allow: [...new Set([...own, "OPTIONS"])].toSorted().join(", ") };
        router.on("GET", url, () => {}, path);
        const shared = { config: { access }, schema: { hide: true } };
        const others = methods.filter((method) => !own.includes(method));
        if (others.length > 0) {
          app.route({
            ...shared,
            url,
            method: others,
            // Runs before the body is read.
            onRequest: (request, reply, done) => refuse(path, request, reply, done),
            handler: async () => {},
          });
        }
        const other = url.endsWith("/") ? url.slice(0, -1) : `${url}/`;
        if (other === "" || url.endsWith("*") || accessByPath.has(other)) continue;
        if (rests.some((rest) => other.startsWith(rest))) continue;
        router.on("GET", other, () => {}, path);
        app.route({ ...shared, url: other, method: methods, handler: redirectOverSlash });
      }
    },
  };
}

function refuse(
  { allow }: KnownPath,
  { method }: FastifyRequest,
  reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  reply.header("allow", allow);
  if (method === "OPTIONS") return void reply.code(204).send();
  return done(new ServiceError("method_not_allowed", `${method} is not allowed here; allowed: ${allow}`));
}
