import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from "fastify";
import { mediumName } from "../../files/file-name.ts";
import { ServiceError } from "../../model/errors.ts";
import { nameInPath } from "../../model/url-parts.ts";
import type { PageInfo } from "../../model/page-info.ts";
import type { InfoCache } from "../../resolvers/info-cache.ts";
import { requireTask } from "../access/ownership.ts";
import { attachment, getFileSchema, media } from "../responses/send-file.ts";
import { untilClosed } from "../responses/turns.ts";
import { createTask, type NewTaskDeps, NewTaskHeaders, readOptions, withDefaults } from "../routes/new-task.ts";
import { parsePageUrl, refuseCutUrl, PageUrl } from "../routes/page-url.ts";
import { secretOfBearer } from "../server/header-fields.ts";
import { rangeRule, refuseBlindRange } from "./blind-range.ts";
import { streamErrors } from "./streams.ts";
import type { SendStream } from "./task-stream.ts";
import { TaskOptions } from "../../model/task.ts";
import { likelyType } from "../../resolvers/likely-type.ts";

const path = "/download";

/** Without `entries`: a download is one file. */
const { entries: _, if_exists, ...otherOptions } = TaskOptions.properties;

const ifExistsDescription =
  "what if the same video with the same options is queued, running or has its file: `reuse`, the default: that task; `new`: a new task";

/** A page, and the options of a task: each is a parameter with the same value as in the body of `POST /tasks/`. */
const DownloadQuery = Type.Object(
  {
    url: { ...PageUrl, description: `${PageUrl.description}; percent-encoded` },
    ...parametersOf(otherOptions),
    if_exists: { ...if_exists, description: ifExistsDescription },
  },
  { additionalProperties: false },
);

/** What passes soon is waited for. */
const maxWaitMs = 2_000;

const fileSchema = getFileSchema(media, [...streamErrors, "cross_site", "invalid_url"]);

const schema = {
  ...fileSchema,
  operationId: "download",
  summary: "Download the video of a page in one request",
  description:
    "Makes a task for the page, or takes the caller's own for the same video with the same options that is queued, running or has its file, " +
    "and sends what `/tasks/{id}/stream` sends. The task is at `Content-Location`; it continues if the client disconnects. " +
    "If an attempt fails and the next one begins more than 2 s later, the response is the problem, with `Retry-After`. " +
    "Each option of a task is a parameter: text as it is, all else in JSON, as in the body of `POST /tasks/`. " +
    "Refused to web pages of other sites, to prefetches, and to sessions unless `Sec-Fetch-Site` is `same-origin` or `none`. " +
    `\`Prefer\` is ignored. ${rangeRule}`,
  tags: ["tasks"],
  querystring: DownloadQuery,
  headers: Type.Composite([fileSchema.headers, Type.Pick(NewTaskHeaders, ["traceparent", "tracestate"])]),
};

interface DownloadDeps extends NewTaskDeps {
  infoCache: InfoCache;
  sendStream: SendStream;
}

/** The route that makes a task and sends its medium. */
export const downloadRoutes: FastifyPluginAsyncTypebox<DownloadDeps> = async (app, deps) => {
  const { store, infoCache, sendStream } = deps;
  const route = { config: { startsWork: true }, onRequest: refuseUnasked, preValidation: refuseCutUrl };

  app.head(path, { ...route, schema: { ...schema, hide: true } }, async (request, reply) => {
    const url = parsePageUrl(request.query.url, "query");
    const options = withDefaults(readDownloadOptions(request.query, deps.defaultOptions), deps.defaultOptions);
    const { sharer: owner } = request;
    const read = await infoCache.get(url, { owner, maxAgeS: Infinity, signal: untilClosed(reply) });
    const info = { formats: [], title: null, ...read.info } as unknown as PageInfo;
    const type = likelyType(info, options);
    if (type === undefined) return reply.header("content-disposition", "attachment").send();
    const name = mediumName(info.title ?? nameInPath(url.href), type.ext, "video");
    return reply.type(type.mime_type).header("content-disposition", attachment(name)).send();
  });

  app.get(path, { ...route, exposeHeadRoute: false, schema }, async (request, reply) => {
    const url = parsePageUrl(request.query.url, "query");
    const options = readDownloadOptions(request.query, deps.defaultOptions);
    refuseBlindRange(request);
    const { caller, headers: trace } = request;
    const wanted = { options, owner: caller?.name, trace, idempotencyKey: undefined };
    const { id } = (await createTask(url, wanted, deps)).task;
    reply.header("content-location", `tasks/${id}`);
    const read = () => requireTask(store, { params: { id }, caller });
    return sendStream(request, reply, { id, read, maxWaitMs });
  });
};

/** Says that lists and objects are JSON (OpenAPI 3.1 §4.8.12.2); numbers, `true` and `false` are so without saying. */
function parametersOf<T extends Record<string, TSchema>>(properties: T): T {
  const inJson = Object.entries(properties).map(([name, property]) => {
    if (["string", "integer", "boolean"].includes(property["type"])) return [name, property];
    return [name, { ...property, "x-consume": "application/json" }];
  });
  return Object.fromEntries(inJson);
}

/**
 * Returns the options of the task that the parameters ask for.
 *
 * @throws ServiceError as `readOptions`
 */
function readDownloadOptions(
  { url: _url, ...given }: Static<typeof DownloadQuery>,
  defaults: TaskOptions,
): TaskOptions {
  return readOptions({ if_exists: "reuse", ...given }, defaults, { part: "query", pointer: "" });
}

/**
 * Hook that refuses what no user has asked for: what a browser fetches in advance, and what may come from another site with the cookie of a
 * session. `checkHosts` refuses what does come from there.
 */
function refuseUnasked(request: FastifyRequest, _reply: FastifyReply, done: HookHandlerDoneFunction): void {
  const { headers, caller } = request;
  const purpose = [headers["sec-purpose"], headers["purpose"], headers["x-purpose"], headers["x-moz"]].join(" ");
  if (/prefetch|prerender|preview/i.test(purpose)) {
    return done(refusal("the browser fetches it in advance, before anybody has asked for it"));
  }
  const site = headers["sec-fetch-site"];
  const isSession = caller !== null && secretOfBearer(headers) === undefined;
  if (!isSession || site === "same-origin" || site === "none") return done();
  const rule = "with the cookie of a session, Sec-Fetch-Site must be same-origin or none";
  return done(refusal(`${rule}; browsers send it to https and localhost only; Authorization: Bearer works everywhere`));
}

function refusal(why: string): ServiceError {
  return new ServiceError("cross_site", `this request starts no download: ${why}`);
}
