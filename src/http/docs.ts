import helmet from "@fastify/helmet";
import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import packageJson from "../../package.json" with { type: "json" };
import type { FastifyInstance, FastifyPluginAsync } from "fastify";

/** `/openapi.json`: OpenAPI 3.1 made from the routes' own schemas. */
export const documentRoutes: FastifyPluginAsync = async (app) => {
  app.get("/openapi.json", { schema: { hide: true } }, async () => app.swagger());
};

/** Collects the schemas of the routes that are added from now on, and shows them at `/docs`. */
export async function registerDocs(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Unreel",
        version: packageJson.version,
        description:
          "Tells what is on a video page and turns its address into a task.\n\n" +
          "Every error is a problem document (RFC 9457) with a `code` from a closed list and " +
          "`retryable`, the verdict whether the same request may succeed later.",
      },
      servers: [{ url: "/" }],
      tags: [
        { name: "info", description: "What is on a page" },
        { name: "tasks", description: "Addresses to download from" },
        { name: "health", description: "Whether the service is up" },
      ],
    },
    refResolver: {
      buildLocalReference: (json, _base, _fragment, index) =>
        typeof json["$id"] === "string" ? json["$id"] : `schema-${index}`,
    },
  });
  await app.register(async (docs) => {
    // TLS is a proxy's matter: over plain HTTP an upgrade would break the page.
    await docs.register(helmet, {
      contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } },
      strictTransportSecurity: false,
    });
    await docs.register(swaggerUi, { routePrefix: "/docs", staticCSP: false });
  });
}
