import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import type { InfoCache } from "../../resolvers/info-cache.ts";
import { urlForMessage } from "../../net/http-url.ts";
import { maxEntries } from "../../model/entry.ts";
import { PageInfo, pageUrlOf } from "../../model/page-info.ts";
import type { Task } from "../../model/task.ts";
import type { TaskStore } from "../../stores/store.ts";
import { type Illustration, type TaggedImage, type Thumbnails, thumbnailTtlS } from "../../resolvers/thumbnails.ts";
import { ConditionHeaders, findMatch } from "../responses/etag.ts";
import { noContent } from "../responses/empty.ts";
import type { SendFile, StoredFile } from "../responses/send-file.ts";
import { untilClosed } from "../responses/turns.ts";
import { requireTask } from "../access/ownership.ts";
import { filesOf, findFile } from "./file.ts";
import { parsePageUrl, refuseCutUrl } from "./page-url.ts";
import { problems } from "../responses/problem.ts";
import { infoErrors, InfoQuerySchema } from "./info.ts";
import { taskErrors, TaskParams } from "./task.ts";

interface ThumbnailRoutesOptions {
  store: TaskStore;
  infoCache: InfoCache;
  thumbnails: Thumbnails;
  sendFile: SendFile;
}

/** What is needed of a page's information; a resolver whose `output` has no thumbnails is one without any. */
const Illustrated = Type.Pick(PageInfo, ["url", "webpage_url", "thumbnails", "entries"]);

const PageThumbnailQuery = Type.Object({
  ...InfoQuerySchema.properties,
  entry: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxEntries,
      description:
        "whose picture is wanted: which of the `entries` that `/info` returns, counted from 1; default the page's",
    }),
  ),
});

const illustratedCheck = TypeCompiler.Compile(Illustrated);

const image = { schema: Type.Unsafe<unknown>({ description: "the image's bytes" }) };

const headers = Type.Pick(ConditionHeaders, ["if-none-match"]);

const responses = {
  200: {
    description: "JPEG, PNG, WebP, AVIF or GIF, at most 2 MiB",
    headers: { etag: { type: "string", description: "strong validator" } },
    content: { "image/*": image },
  },
  304: noContent("the image still has the `ETag` of `If-None-Match`"),
};

const pageSchema = {
  operationId: "getPageThumbnail",
  summary: "Get the thumbnail of a video page",
  description:
    "Reads the page unless it is cached, then one of the images in its `thumbnails`, or the one of an entry.",
  tags: ["info"],
  querystring: PageThumbnailQuery,
  headers,
  response: { ...responses, ...problems(...infoErrors, "not_found") },
};

const taskSchema = {
  operationId: "getTaskThumbnail",
  summary: "Get the thumbnail of a task",
  description:
    "Reads one of the images in the `thumbnails` of its `info`. If that fails, and the task has a file of " +
    "`kind` `cover`, it is that file.",
  tags: ["tasks"],
  params: TaskParams,
  headers,
  response: {
    ...responses,
    ...problems(
      ...taskErrors,
      "cross_site",
      "address_blocked",
      "upstream_unreachable",
      "upstream_status",
      "upstream_invalid",
      "upstream_timeout",
    ),
  },
};

/** Images for pages of this service, which load nothing from other hosts: addressed by page or task, never by their own URL. */
export const thumbnailRoutes: FastifyPluginAsyncTypebox<ThumbnailRoutesOptions> = async (
  app,
  { store, infoCache, thumbnails, sendFile },
) => {
  const config = { startsWork: true };

  function send({ bytes, type, etag }: TaggedImage, request: FastifyRequest, reply: FastifyReply) {
    reply.headers({ etag, ...imageHeaders });
    const isUnmodified = findMatch(request.headers["if-none-match"], etag) !== undefined;
    return isUnmodified ? reply.code(304).send() : reply.type(type).send(bytes);
  }

  app.get("/info/thumbnail", { config, schema: pageSchema, preValidation: refuseCutUrl }, async (request, reply) => {
    const { entry, entries_cursor: entriesCursor } = request.query;
    const url = parsePageUrl(request.query.url, "query");
    const { sharer: owner } = request;
    const signal = untilClosed(reply);
    const query = { owner, maxAgeS: Number.POSITIVE_INFINITY, entriesCursor };
    const wanted = { what: `the page ${urlForMessage(url)}`, entry };
    const cached = infoCache.find(url, query);
    if (cached !== undefined) {
      return send(await thumbnails.get(illustrationOf(cached.info, wanted), { owner, signal }), request, reply);
    }
    const source = { key: `${entry} ${entriesCursor} ${url.href}`, host: url.host };
    const read = async (reading: AbortSignal) => {
      const { info } = await infoCache.get(url, { ...query, signal: reading });
      return illustrationOf(info, wanted);
    };
    return send(await thumbnails.read(source, read, { owner, signal }), request, reply);
  });

  app.get("/tasks/:id/thumbnail", { config, schema: taskSchema }, async (request, reply) => {
    const task = await requireTask(store, request);
    const { id, info } = task;
    const wanted = { owner: request.sharer, signal: untilClosed(reply) };
    try {
      const illustration = illustrationOf(info, { what: `task ${id}` });
      return send(await thumbnails.get(illustration, wanted), request, reply);
    } catch (error) {
      const cover = coverOf(task);
      if (cover === undefined || !(error instanceof ServiceError)) throw error;
      request.log.debug({ task: id, code: error.code, reason: error.message }, "the thumbnail is the task's cover");
      return sendFile(request, reply.headers(imageHeaders), cover);
    }
  });
};

const imageHeaders = {
  "cache-control": `private, max-age=${thumbnailTtlS}`,
  "content-security-policy": "default-src 'none'",
  "cross-origin-resource-policy": "same-origin",
};

/** Returns the picture that was kept with the medium; undefined if the task has none now. */
function coverOf(task: Task): StoredFile | undefined {
  const cover = filesOf(task).find(({ kind }) => kind === "cover");
  return cover && findFile(task, cover.name);
}

/** What a thumbnail is of, and which entry of that is meant. */
interface Wanted {
  what: string;
  entry?: number | undefined;
}

/** @throws ServiceError `not_found` if nothing is known of thumbnails, or the entry has none */
function illustrationOf(info: unknown, { what, entry }: Wanted): Illustration {
  if (!illustratedCheck.Check(info)) throw new ServiceError("not_found", `${what} has no thumbnail`);
  const page = new URL(pageUrlOf(info));
  if (entry === undefined) return { page, listed: info.thumbnails };
  const { thumbnail: url = null } = info.entries?.[entry - 1] ?? {};
  if (url === null) throw new ServiceError("not_found", `entry ${entry} of ${what} has no thumbnail`);
  return { page, listed: [{ url, width: null, height: null }] };
}
