import type { FastifyInstance } from "fastify";
import { ServiceError } from "../errors.ts";

/**
 * Watches which methods each path gets. `refuseOthers`, called after the last route, answers the
 * others with 405 and `Allow` (RFC 9110 §15.5.6), and OPTIONS with 204 and `Allow`.
 */
export function registerMethods(app: FastifyInstance): { refuseOthers(): void } {
  const methodsOf = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method }) => {
    const methods = methodsOf.get(url) ?? new Set<string>();
    for (const name of [method].flat()) methods.add(name);
    methodsOf.set(url, methods);
  });
  return {
    refuseOthers() {
      for (const [url, methods] of methodsOf.entries().toArray()) {
        const others = app.supportedMethods.filter((name) => !methods.has(name));
        if (others.length > 0) refuse(app, url, [...methods], others);
      }
    },
  };
}

function refuse(
  app: FastifyInstance,
  url: string,
  methods: readonly string[],
  others: string[],
): void {
  const allow = [...new Set([...methods, "OPTIONS"])].toSorted().join(", ");
  app.route({
    url,
    method: others,
    schema: { hide: true },
    // Before the body is read: a refused method's body is of no interest.
    onRequest: async (request, reply) => {
      reply.header("allow", allow);
      if (request.method === "OPTIONS") return reply.code(204).send();
      throw new ServiceError(
        "method_not_allowed",
        `${request.method} is not allowed here; allowed: ${allow}`,
      );
    },
    handler: async () => {},
  });
}
