import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import { ServiceError } from "../../model/errors.ts";
import type { TaskEvents } from "../../feed/task-events.ts";
import type { KeyRing } from "../../keys/key-ring.ts";
import { Shares } from "../../async/shares.ts";
import { requireAccept } from "../responses/accept.ts";
import { createEventStreams } from "../responses/event-streams.ts";
import { earlyCorsHeaders, type Origins } from "../server/origins.ts";
import { ownerFilter, OwnerQuery, sharerOf } from "../access/ownership.ts";
import { everyResponse, requestIdHeader } from "../responses/every-response.ts";
import { problems } from "../responses/problem.ts";
import { onClosed } from "../responses/turns.ts";

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
    "Server-sent events, without end. `task`: a task after a change, without `info` if that is " +
    "as in the task's previous event. `deleted`: the `id` of a deleted task. `reset`: missed " +
    "changes are no longer available; read the list again. With `Last-Event-ID` the stream " +
    "resumes after that event. To know every `info`, open the stream before you read the list.",
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
    ...problems("invalid_request", "cross_site", "forbidden", "not_acceptable", "too_many_requests"),
  },
};

interface EventRoutesOptions {
  events: TaskEvents;
  keys: KeyRing;
  /** Open at a time, as the `total` of `Shares`. */
  maxStreams: number;
  origins: Origins;
}

export const eventRoutes: FastifyPluginAsyncTypebox<EventRoutesOptions> = async (app, deps) => {
  const { events, keys, maxStreams, origins } = deps;
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
    const { caller } = request;
    const owner = ownerFilter(caller, request.query.owner);
    const release = shares.take(sharerOf(caller));
    if (release === undefined) {
      const rule = `${shares.taken} event streams are open, the limit is ${maxStreams}, of which each key has its share`;
      throw new ServiceError("too_many_requests", rule, { retryAfterS: 10 });
    }
    onClosed(reply.raw, release);
    reply.hijack();
    const readable = earlyCorsHeaders(origins, request.headers.origin);
    reply.raw.writeHead(200, { ...streamHeaders, ...readable, [requestIdHeader]: request.id });
    streams.open(reply.raw, {
      after: request.headers["last-event-id"],
      taskId: request.query.task,
      owner,
      isAdmitted: () => keys.admits(caller),
    });
  });
};
