import type { FastifyRequest } from "fastify";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import { ServiceError } from "../../model/errors.ts";
import type { TaskStore } from "../../stores/store.ts";
import { taskNotFoundError } from "../../stores/rules.ts";
import type { KeyRing } from "../../keys/key-ring.ts";
import { Shares } from "../../async/shares.ts";
import { requireAccept } from "../responses/accept.ts";
import { createEventStreams } from "../responses/event-streams.ts";
import { earlyCorsHeaders, type Origins } from "../server/origins.ts";
import { ownerFilter, OwnerQuery, requireTask } from "../access/ownership.ts";
import { everyResponse, requestIdHeader } from "../responses/every-response.ts";
import { problems } from "../responses/problem.ts";
import { onClosed } from "../responses/turns.ts";
import { taskErrors } from "./task.ts";

const mediaType = "text/event-stream";

const streamHeaders = {
  ...everyResponse,
  "content-type": mediaType,
  "cache-control": "no-store",
  // Else nginx buffers events.
  "x-accel-buffering": "no",
};

const watchSchema = {
  operationId: "watchTasks",
  summary: "Watch the tasks change",
  description:
    "Server-sent events, without end; those of one task end once it is deleted. `task`: a task " +
    "after a change, without `info` if that is as in the task's previous event. `deleted`: the `id` " +
    "of a deleted task. `reset`: missed changes are no longer available; read the list again. With " +
    "`Last-Event-ID` the stream resumes after that event. To know every `info`, open the stream " +
    "before you read the list.",
  tags: ["tasks"],
  headers: Type.Object({ "last-event-id": Type.Optional(Type.String()) }),
  querystring: Type.Object({
    task: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: "only changes of the task with this id" }),
    ),
    owner: OwnerQuery,
  }),
  response: {
    200: {
      description: "one event for each change, a comment every 15 seconds",
      content: { [mediaType]: { schema: Type.String() } },
    },
    ...problems(...taskErrors, "cross_site", "forbidden", "not_acceptable", "too_many_requests"),
  },
};

interface EventRoutesOptions {
  store: TaskStore;
  keys: KeyRing;
  /** Open at a time, as the `total` of `Shares`. */
  maxStreams: number;
  origins: Origins;
}

export const eventRoutes: FastifyPluginAsyncTypebox<EventRoutesOptions> = async (app, deps) => {
  const { store, keys, maxStreams, origins } = deps;
  const { events } = store;
  const streams = createEventStreams(events);
  const shares = new Shares(maxStreams);
  const unsubscribe = keys.subscribe(() => streams.endUnadmitted());
  app.addHook("preClose", async () => {
    unsubscribe();
    streams.close();
  });
  app.addHook("onRequest", requireAccept(mediaType));
  const path = "/tasks/events";

  // Fastify would run the GET handler for HEAD, which never ends.
  app.head(path, { schema: { hide: true } }, async (_request, reply) => reply.headers(streamHeaders).send());

  const options = { exposeHeadRoute: false, config: { startsWork: true }, schema: watchSchema };
  app.get(path, options, async (request, reply) => {
    const { caller, headers, sharer } = request;
    const { task: taskId, owner: asked } = request.query;
    const owner = ownerFilter(caller, asked);
    const after = headers["last-event-id"];
    // Before the task is looked for: it may be deleted meanwhile.
    const newest = events.lastId;
    await assertWatchable(store, { taskId, owner, after, caller });
    const release = shares.take(sharer);
    if (release === undefined) {
      const rule = `${shares.taken} event streams are open, the limit is ${maxStreams}, of which each key has its share`;
      throw new ServiceError("too_many_requests", rule, { retryAfterS: 10 });
    }
    onClosed(reply.raw, release);
    reply.hijack();
    const readable = earlyCorsHeaders(origins, headers.origin);
    reply.raw.writeHead(200, { ...streamHeaders, ...readable, [requestIdHeader]: request.id });
    streams.open(reply.raw, {
      after,
      newest,
      taskId,
      owner,
      isAdmitted: () => keys.admits(caller?.hash ?? null),
    });
  });
};

interface Watch extends Pick<FastifyRequest, "caller"> {
  taskId: string | undefined;
  owner: string | undefined;
  after: string | undefined;
}

/** @throws ServiceError `not_found` if there is no such task, and no change of it that a stream which resumes has missed: it may have been deleted. */
async function assertWatchable(store: TaskStore, { taskId: id, owner, after, caller }: Watch): Promise<void> {
  if (id === undefined) return;
  const isOf = (holder: string | null | undefined) => owner === undefined || holder === owner;
  const missed = after === undefined ? [] : (store.events.since(after, { owner }) ?? []);
  if (missed.some((event) => event.taskId === id)) return;
  const task = await requireTask(store, { params: { id }, caller });
  if (!isOf(task.owner)) throw taskNotFoundError(id);
}
