import helmet from "@fastify/helmet";
import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import packageJson from "../../../package.json" with { type: "json" };
import type {
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  HookHandlerDoneFunction,
  RouteOptions,
} from "fastify";
import { sessionCookie } from "../access/access.ts";
import { problemMediaType } from "../responses/problem.ts";

/**
 * Documents all routes that are registered after it: `/openapi.json` is OpenAPI 3.1, made from the schemas
 * of the routes; `/docs` shows it.
 */
export async function registerDocs(app: FastifyInstance): Promise<void> {
  const documented = documentWithoutProblems(app);
  await app.register(swagger, {
    transform: ({ schema, url, route }) => ({ schema: documented.get(route) ?? schema, url }),
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Unreel",
        version: packageJson.version,
        description:
          "Extracts metadata from video pages and downloads the videos in background tasks.\n\n" +
          "Every error is a problem document (RFC 9457). Its `code` is one of a closed list; " +
          "`retryable` says whether the same request may succeed later.",
      },
      components: {
        securitySchemes: {
          key: { type: "http", scheme: "bearer", description: "needed once the service has keys" },
          session: {
            type: "apiKey",
            in: "cookie",
            name: sessionCookie,
            description: "of a browser that has sent its key to `POST /session`",
          },
        },
      },
      tags: [
        { name: "info", description: "Metadata and media formats of a video page" },
        { name: "tasks", description: "Downloads in the background" },
        { name: "session", description: "Keys in browsers" },
        { name: "metrics", description: "For Prometheus" },
        { name: "health", description: "Probes for load balancers and orchestrators" },
      ],
    },
    refResolver: {
      buildLocalReference: (json, _base, _fragment, index) =>
        typeof json["$id"] === "string" ? json["$id"] : `schema-${index}`,
    },
  });
  await app.register(documentRoutes);
}

const documentRoutes: FastifyPluginAsync = async (app) => {
  const texts = new Map<string, string>();
  /** Sends the document with the service's URL, relative to that of the document: a proxy may have it below any path. */
  const sendDocument = (reply: FastifyReply, url: string): FastifyReply => {
    // Once: that takes as long as hundreds of other requests.
    const text = texts.getOrInsertComputed(url, () =>
      JSON.stringify({ ...nameSchemas(app.swagger()), servers: [{ url }] }),
    );
    return reply.type("application/json; charset=utf-8").send(text);
  };
  app.get("/openapi.json", { schema: { hide: true } }, async (_request, reply) => sendDocument(reply, "."));
  await app.register(async (docs) => {
    // A reverse proxy terminates TLS; over plain HTTP, upgraded requests would break the page.
    await docs.register(helmet, {
      contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } },
      strictTransportSecurity: false,
    });
    await docs.register(swaggerUi, {
      routePrefix: "/docs",
      staticCSP: false,
      uiHooks: {
        onRequest(request, reply, done) {
          const [path = ""] = request.url.split("?", 1);
          if (path === "/docs/json") sendDocument(reply, "..");
          // The page does not need it, and the package would make it again for each request.
          else if (path === "/docs/yaml") reply.callNotFound();
          else redirectToFolder(request, reply, done);
        },
      },
    });
  });
};

/** Redirects from other paths of the page to `/docs/`: only there are the URLs of its assets relative. */
function redirectToFolder({ url }: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void {
  const [path = ""] = url.split("?", 1);
  if (path === "/docs") reply.redirect("docs/", 308);
  else if (path === "/docs/" && url !== path) reply.redirect("./", 308);
  else if (path === "/docs/static/index.html") reply.redirect("../", 308);
  else done();
}

/**
 * Takes the problems out of the schemas of all routes that are registered after it, as Fastify would compile a serializer for each of the 130,
 * which takes two thirds of the time of `buildApp`. Returns the whole schemas, for the document.
 */
function documentWithoutProblems(app: FastifyInstance): WeakMap<RouteOptions, FastifySchema> {
  const documented = new WeakMap<RouteOptions, FastifySchema>();
  app.addHook("onRoute", (route) => {
    const { schema } = route;
    if (schema?.response === undefined) return;
    documented.set(route, schema);
    const responses = Object.entries(schema.response as Record<string, DocumentedResponse>);
    const others = responses.filter(([, { content = {} }]) => !Object.hasOwn(content, problemMediaType));
    route.schema = { ...schema, response: Object.fromEntries(others) };
  });
  return documented;
}

interface DocumentedResponse {
  /** By media type. */
  content?: object;
}

/**
 * Returns the OpenAPI document with every schema of an object that has a `title` once, among its components, under that
 * name, so that clients that are generated from it have a type of that name.
 *
 * @throws Error if two different schemas have the same title.
 */
function nameSchemas(document: object): object {
  const schemas: Record<string, object> = {};

  function visit(node: unknown): unknown {
    if (Array.isArray(node)) return node.map(visit);
    if (typeof node !== "object" || node === null) return node;
    const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)]));
    return isNamed(copy) ? refer(copy) : copy;
  }

  /** Nothing but its description depends on where a schema is used. */
  function refer({ type, description, ...schema }: NamedSchema): object {
    const name = schema.title;
    const found = schemas[name];
    const named = { type: "object", ...schema };
    if (found !== undefined && JSON.stringify(found) !== JSON.stringify(named)) {
      throw new Error(`two schemas have the title ${name}`);
    }
    schemas[name] = named;
    const described = description === undefined ? {} : { description };
    const reference = { $ref: `#/components/schemas/${name}` };
    return type === "object" ? { ...reference, ...described } : { anyOf: [reference, { type: "null" }], ...described };
  }

  const { components, ...rest } = visit(document) as { components?: { schemas?: object } };
  return { ...rest, components: { ...components, schemas: { ...components?.schemas, ...schemas } } };
}

interface NamedSchema {
  title: string;
  properties: object;
  /** `"object"`, or also `"null"`. */
  type: unknown;
  description?: string;
}

function isNamed(node: object): node is NamedSchema {
  return "properties" in node && "title" in node && typeof node.title === "string";
}
