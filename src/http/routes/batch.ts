import { createHash, randomUUIDv7 } from "node:crypto";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import { Shares } from "../../async/shares.ts";
import { inputError, isServiceError, ServiceError, statusOf } from "../../model/errors.ts";
import type { Reused } from "../../stores/store-types.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { bodyErrors, type Problem, problemOf, problems } from "../responses/problem.ts";
import { createResponsePlaces } from "../responses/response-places.ts";
import { sendList } from "../responses/send-list.ts";
import { createTurns, onClosed, untilClosed } from "../responses/turns.ts";
import { readJsonBodies } from "../server/json.ts";
import {
  createTask,
  type NewTaskDeps,
  NewTaskHeaders,
  NewTaskOptions,
  readIdempotencyKey,
  readOptions,
  statusOfNew,
} from "./new-task.ts";
import { PageUrl, parsePageUrl } from "./page-url.ts";
import { TaskRef } from "./task.ts";

const maxUrls = 500;
const maxBodyBytes = 1 << 20;
/** As bodies of other routes have at most: thousands of connections may each send one as slowly as they like. */
const shortBodyBytes = 64 * 1024;
/** Of the options, as each task keeps them: else a body could make records of five hundred times its length. */
const maxOptionsBytes = 16_000;
/** Longer bodies in memory at a time, shared by owners; their clients wait before they are read. */
const maxLongBodies = 16;
/** Batches in memory at a time: each has up to 8 MB of tasks that existed until its client has read them. */
const maxBatches = 8;

const BatchBody = Type.Object(
  {
    urls: Type.Array(PageUrl, {
      minItems: 1,
      maxItems: maxUrls,
      examples: [PageUrl.examples],
      description: "pages, each of which becomes a task",
    }),
    options: Type.Optional(NewTaskOptions),
  },
  { title: "NewTasks" },
);

const BatchItem = Type.Object(
  {
    status: Type.Integer({
      description: "201, 200 if the task existed (`if_exists`), or the HTTP status of the problem",
    }),
    task: Type.Optional(TaskRef),
    problem: Type.Optional(Type.Unsafe<Problem>(Type.Ref("Problem#", { description: "why there is no task" }))),
  },
  { title: "BatchItem" },
);

const BatchResult = Type.Object(
  { results: Type.Array(BatchItem, { description: "one for each URL, in their order" }) },
  { title: "BatchResult" },
);

const schema = {
  operationId: "createTasks",
  summary: "Create a task for each of up to 500 pages",
  description:
    "What was made is durably stored before the response is sent. A URL that is refused, by a limit of the key too, does not keep the others from becoming tasks.",
  tags: ["tasks"],
  headers: NewTaskHeaders,
  body: BatchBody,
  response: {
    200: { ...BatchResult, description: "what became of each URL" },
    ...problems(...bodyErrors, "idempotency_mismatch", "too_many_requests", "internal", "unavailable"),
  },
};

export const batchRoutes: FastifyPluginAsyncTypebox<NewTaskDeps> = async (app, deps) => {
  app.addHook("onRequest", requireAcceptJson);
  const longBodies = new Shares(maxLongBodies);
  app.addHook("preParsing", async (request, reply) => {
    const bytes = Number(request.headers["content-length"] ?? maxBodyBytes);
    if (bytes <= shortBodyBytes || bytes > maxBodyBytes) return;
    onClosed(reply.raw, await longBodies.wait(request.sharer, untilClosed(reply)));
  });
  readJsonBodies(app);
  /** One batch is stored at a time: many at once would hold up the tasks of others in the store. */
  const stores = new Shares(1, "firm");
  const turns = createTurns();
  const batches = createResponsePlaces(maxBatches);

  app.post("/tasks/batch", { schema, bodyLimit: maxBodyBytes }, async (request, reply) => {
    const { urls } = request.body;
    const options = readOptions(request.body.options, deps.defaultOptions);
    const optionsBytes = Buffer.byteLength(JSON.stringify(options));
    if (optionsBytes > maxOptionsBytes) {
      const detail = `must have at most ${maxOptionsBytes} bytes of JSON, as each of the tasks keeps them, got ${optionsBytes}`;
      throw inputError("body", { pointer: "/options", detail });
    }
    const key = readIdempotencyKey(request);
    // Those of one millisecond have random ids, by which clients sort them.
    const ids = urls.map(() => randomUUIDv7()).toSorted();
    const create = async (text: string, index: number) => {
      const url = parsePageUrl(text, "body", `/urls/${index}`);
      const idempotencyKey = key === undefined ? undefined : keyOfUrl(key, index);
      const wanted = { id: ids[index], options, owner: request.caller?.name, trace: request.headers, idempotencyKey };
      return createTask(url, wanted, deps);
    };
    // What else the body has may be long, and wait long.
    request.body = { urls };
    const closed = untilClosed(reply);
    const place = await batches.wait(request, reply);
    const release = await stores.wait(request.sharer, closed);
    try {
      // All at once: a store writes together what arrives together.
      const items = toResults(await Promise.allSettled(urls.map(create)));
      // Tasks that existed are long.
      sendList(reply, {
        start: '{"results":[',
        items,
        serialize: reply.compileSerializationSchema(BatchItem),
        end: "]}",
        untilTurn: () => turns.wait(request, closed),
        place,
      });
    } finally {
      // If all URLs are refused, nothing waits for the store, and no other request would have a turn of the event loop.
      setImmediate(release);
    }
    return reply;
  });
};

/** Returns the key of the URL at `index`, so that a request that is sent again makes what it has not made yet. */
function keyOfUrl(key: string, index: number): string {
  return `batch ${createHash("sha256").update(key).digest("base64url")} ${index}`;
}

/** Errors that say something of the request or the service rather than of a URL. */
const common = new Set<string>(["idempotency_mismatch", "internal"]);

/**
 * @throws the error of a URL that is none of the URL's own: another request had its key; nothing could be stored
 */
function toResults(made: readonly PromiseSettledResult<Reused>[]) {
  const errors = made.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : []));
  const fault = errors.find((error) => !(error instanceof ServiceError) || common.has(error.code));
  if (fault !== undefined) throw fault;
  const isAway = errors.every((error) => isServiceError(error, "unavailable"));
  if (errors.length === made.length && isAway) throw errors[0];
  return made.map((result) => {
    if (result.status === "fulfilled") return { status: statusOfNew(result.value), task: result.value.task };
    const error = result.reason as ServiceError;
    return { status: statusOf(error), problem: problemOf(error) };
  });
}
