import { METHODS } from "node:http";
import type { FastifyInstance } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import { redirectOverSlash } from "../responses/empty.ts";
import type { Access } from "./access.ts";

/**
 * Records the paths of all routes. `refuseOthers`, called after the last route, adds a route for the
 * methods that a path does not have: 405 with `Allow` (RFC 9110 §15.5.6), for OPTIONS 204 with `Allow`. It also redirects to each
 * path from the one with a slash more or less at its end.
 *
 * @param known Methods that a path may have or refuse, beside those that Fastify knows; others are 404.
 */
export function registerMethods(app: FastifyInstance, known: readonly string[] = METHODS): { refuseOthers(): void } {
  const paths = new Map<string, Access | undefined>();
  for (const method of known) {
    if (method !== "CONNECT" && !app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }
  /** Those that some route has. */
  const inUse = new Set<string>();
  app.addHook("onRoute", ({ url, method, config }) => {
    paths.set(url, config?.access);
    for (const each of [method].flat()) inUse.add(each);
  });
  return {
    refuseOthers() {
      // The routes that this adds have all others.
      const used = [...inUse];
      /** What the routes for all other paths below a folder begin with. */
      const rests = [...paths.keys()].filter((url) => url.endsWith("*")).map((url) => url.slice(0, -1));
      for (const [url, access] of paths.entries().toArray()) {
        const methods = new Set(used.filter((method) => app.hasRoute({ method, url })));
        const others = app.supportedMethods.filter((method) => !methods.has(method));
        if (others.length > 0) refuse(app, { url, access, methods: [...methods], others });
        const other = url.endsWith("/") ? url.slice(0, -1) : `${url}/`;
        if (other === "" || url.endsWith("*") || paths.has(other) || rests.some((rest) => other.startsWith(rest)))
          continue;
        app.all(other, { config: { access }, schema: { hide: true } }, redirectOverSlash);
      }
    },
  };
}

interface Refusal {
  url: string;
  access: Access | undefined;
  /** Those that the path has. */
  methods: readonly string[];
  others: string[];
}

function refuse(app: FastifyInstance, { url, access, methods, others }: Refusal): void {
  const allow = [...new Set([...methods, "OPTIONS"])].toSorted().join(", ");
  app.route({
    url,
    method: others,
    config: { access },
    schema: { hide: true },
    // Runs before the body is read.
    onRequest: async (request, reply) => {
      reply.header("allow", allow);
      if (request.method === "OPTIONS") return reply.code(204).send();
      throw new ServiceError("method_not_allowed", `${request.method} is not allowed here; allowed: ${allow}`);
    },
    handler: async () => {},
  });
}
