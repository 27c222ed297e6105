import { Type } from "@sinclair/typebox";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import type { InfoCache } from "../../resolvers/info-cache.ts";
import type { Resolver } from "../../resolvers/resolver.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { PageUrl, parsePageUrl, refuseCutUrl } from "./page-url.ts";
import { problems } from "../responses/problem.ts";
import { createRecordPlaces } from "../responses/record-places.ts";
import { createTurns, longJson, untilClosed } from "../responses/turns.ts";

export const InfoQuerySchema = Type.Object({
  url: Type.String({ ...PageUrl, description: `${PageUrl.description}; percent-encoded` }),
  entries_cursor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description: "the entries of a playlist to return, from `entries_next`; opaque; default the first ones",
    }),
  ),
});

/** How every route that reads a page may fail. */
export const infoErrors = [
  "invalid_request",
  "invalid_url",
  "cross_site",
  "address_blocked",
  "login_required",
  "geo_restricted",
  "drm_protected",
  "live_stream",
  "too_many_requests",
  "internal",
  "upstream_unreachable",
  "upstream_status",
  "upstream_invalid",
  "upstream_timeout",
  "unavailable",
] as const;

/** Long responses in memory at a time: one may have 1 MB. */
const maxLong = 16;

interface InfoRoutesOptions {
  infoCache: InfoCache;
  resolver: Resolver;
}

export const infoRoutes: FastifyPluginAsyncTypebox<InfoRoutesOptions> = async (app, { infoCache, resolver }) => {
  app.addHook("onRequest", requireAcceptJson);
  const turns = createTurns();
  const places = createRecordPlaces(maxLong);

  const schema = {
    operationId: "getInfo",
    summary: "Read a video page",
    description:
      "Returns its metadata and media formats. The response may be cached: `Age` says how old " +
      "it is; `Cache-Control: no-cache` or `max-age` makes the service read the page again.",
    tags: ["info"],
    querystring: InfoQuerySchema,
    headers: Type.Object({ "cache-control": Type.Optional(Type.String()) }),
    response: {
      200: {
        ...resolver.output,
        description: "what is on the page",
        headers: { age: { type: "integer", description: "seconds since the page was read" } },
      },
      ...problems(...infoErrors, "not_acceptable"),
    },
  };
  app.get("/info", { config: { startsWork: true }, schema, preValidation: refuseCutUrl }, async (request, reply) => {
    const url = parsePageUrl(request.query.url, "query");
    const maxAgeS = maxAgeOf(request.headers["cache-control"] ?? "");
    const { info, length, ageS } = await infoCache.get(url, {
      entriesCursor: request.query.entries_cursor,
      owner: request.sharer,
      // A getter, as a cached response needs none.
      get signal() {
        return untilClosed(reply);
      },
      maxAgeS,
    });
    reply.header("age", ageS);
    if (length > longJson) {
      await places.wait(request, reply);
      // Fastify writes it as JSON in this turn of the event loop.
      await turns.wait(request, untilClosed(reply));
    }
    return info;
  });
};

/** Returns the greatest age that the request accepts, seconds (RFC 9111 §5.2.1). */
function maxAgeOf(cacheControl: string): number {
  const ages = cacheControl.split(",").map((directive) => {
    const [name = "", value = ""] = directive.trim().toLowerCase().split("=");
    if (name === "no-cache" || name === "no-store") return 0;
    return name === "max-age" && /^\d+$/.test(value) ? Number(value) : Number.POSITIVE_INFINITY;
  });
  return Math.min(...ages);
}
