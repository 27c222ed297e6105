import { setTimeout as wait } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import { sleep } from "../../async/deadline.ts";
import { createKeyedMutex } from "../../async/keyed-mutex.ts";
import { inputError } from "../../model/errors.ts";
import { nullable, oneOf } from "../../model/schema.ts";
import { states, Task } from "../../model/task.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { readJsonBodies } from "../server/json.ts";
import type { AccessCheck } from "../access/access.ts";
import { ownerFilter, OwnerQuery, requireTask } from "../access/ownership.ts";
import {
  createTask,
  type NewTaskDeps,
  NewTaskBody,
  NewTaskHeaders,
  readIdempotencyKey,
  readOptions,
  statusOfNew,
} from "./new-task.ts";
import { parsePageUrl } from "./page-url.ts";
import type { ListQuery } from "../../stores/store.ts";
import { PreferHeaders, type TaskWaits } from "../responses/prefer-wait.ts";
import { bodyErrors, problems } from "../responses/problem.ts";
import { createResponsePlaces } from "../responses/response-places.ts";
import { createRecordPlaces } from "../responses/record-places.ts";
import { sendList } from "../responses/send-list.ts";
import { createTurns, longJson, untilClosed } from "../responses/turns.ts";
import { TaskRef } from "./task.ts";

const TaskList = Type.Object(
  {
    tasks: Type.Array(TaskRef, { description: "newest first" }),
    next: nullable(Type.String(), "URL of the next page, relative to that of the request; null on the last page"),
  },
  { title: "TaskList" },
);

export const ListQuerySchema = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50, description: "tasks per page" })),
  state: Type.Optional(oneOf(states, "only tasks in this state")),
  owner: OwnerQuery,
  parent: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: "only members of the collection with this id, by index" }),
  ),
  cursor: Type.Optional(Type.String({ description: "the page to return, from `next`; opaque" })),
});

const listSchema = {
  operationId: "listTasks",
  summary: "List tasks, newest first",
  description: "Tasks that a collection has made are listed with `parent` only.",
  tags: ["tasks"],
  querystring: ListQuerySchema,
  response: {
    200: {
      ...TaskList,
      description: "a page of tasks",
      headers: { link: { type: "string", description: "`next`, if there is one" } },
    },
    ...problems("invalid_request", "forbidden", "not_found", "not_acceptable", "internal", "unavailable"),
  },
};

const createdHeaders = {
  location: { type: "string", description: "URL of the task, relative to that of the request" },
  "preference-applied": { type: "string" },
};

const createSchema = {
  operationId: "createTask",
  summary: "Create a task that downloads the video of a page",
  description: "The task is durably stored before the response is sent.",
  tags: ["tasks"],
  headers: Type.Composite([NewTaskHeaders, PreferHeaders]),
  body: NewTaskBody,
  response: {
    200: { ...TaskRef, description: "the task that existed, with `if_exists`", headers: createdHeaders },
    201: { ...TaskRef, headers: createdHeaders },
    ...problems(
      "invalid_request",
      "invalid_url",
      ...bodyErrors,
      "idempotency_mismatch",
      "address_blocked",
      "too_many_requests",
      "quota_exceeded",
      "internal",
      "unavailable",
    ),
  },
};

/** Lists in memory at a time: a long one takes megabytes until its client has read it. */
const maxLists = 32;

/** Responses to a POST in memory at a time whose task may be an earlier one, with a long record. */
const maxEarlier = 64;

/** `/tasks/` relative to itself, as the service cannot know below which path a proxy has it. */
const ownPath = "../tasks/";

interface TaskRoutesOptions extends NewTaskDeps {
  access: Pick<AccessCheck, "untilRemoved">;
  waits: TaskWaits;
}

export const taskRoutes: FastifyPluginAsyncTypebox<TaskRoutesOptions> = async (app, deps) => {
  const { store, access, waits } = deps;
  /** By key: its lists are sent one at a time, with pauses after long ones, which would take the processor from all others. */
  const lists = createKeyedMutex();
  const turns = createTurns();
  const places = createResponsePlaces(maxLists);
  const earlier = createRecordPlaces(maxEarlier);
  app.addHook("onRequest", requireAcceptJson);
  readJsonBodies(app);

  app.get("/tasks/", { schema: listSchema }, async (request, reply) => {
    const { limit = 50, state, owner: asked, parent, cursor } = request.query;
    const owner = ownerFilter(request.caller, asked);
    if (parent !== undefined) await requireTask(store, { params: { id: parent }, caller: request.caller });
    const before = cursor === undefined ? undefined : parseCursor(cursor);
    const untilTurn = () => turns.wait(request, untilClosed(reply));
    const sendPage = async (): Promise<void> => {
      // The client may have left while earlier lists of its key were sent.
      if (reply.raw.destroyed) return void reply.hijack();
      const place = await places.wait(request, reply);
      const startMs = performance.now();
      if (turns.isTaken()) await untilTurn();
      const page = await store.list({ limit, state, owner, parent, before });
      const next = page.next === undefined ? null : nextUrl(page.next, { limit, state, owner: asked, parent });
      if (next !== null) reply.header("link", `<${next}>; rel="next"`);
      const isLong = sendList(reply, {
        start: '{"tasks":[',
        items: page.tasks,
        serialize: reply.compileSerializationSchema(Task),
        end: `],"next":${JSON.stringify(next)}}`,
        untilTurn,
        place,
      });
      if (isLong) await untilSentAndPaused(reply, startMs);
    };
    if (request.caller === null) await sendPage();
    else await lists.runExclusive(request.caller.name, sendPage);
    return reply;
  });

  app.post("/tasks/", { schema: createSchema }, async (request, reply) => {
    const options = readOptions(request.body.options, deps.defaultOptions);
    const idempotencyKey = readIdempotencyKey(request);
    const wanted = { options, owner: request.caller?.name, trace: request.headers, idempotencyKey };
    const mayBeEarlier = options.if_exists !== undefined || idempotencyKey !== undefined;
    const place = mayBeEarlier ? await earlier.wait(request, reply) : undefined;
    const made = await createTask(parsePageUrl(request.body.url, "body"), wanted, deps);
    const { task: created } = made;
    const { id } = created;
    if (made.isNew || JSON.stringify(created).length <= longJson) place?.release();
    reply.code(statusOfNew(made)).header("location", `${ownPath}${id}`);
    if (request.headers.prefer === undefined) return created;
    const ended = waits.wait(id, request.headers, reply, () => store.get(id));
    // The task is made, but what becomes of it is not for a key that was removed.
    const task = await Promise.race([ended, access.untilRemoved(reply.raw)]);
    await place?.retake();
    return task ?? created;
  });
};

/** How long a list may hold up further ones of its key until it is sent, and then a pause as long as that took, in milliseconds. */
const maxTurnMs = 1_000;
const maxPauseMs = 500;

async function untilSentAndPaused(reply: FastifyReply, startMs: number): Promise<void> {
  await sleep(maxTurnMs, untilClosed(reply));
  await wait(Math.min(performance.now() - startMs, maxPauseMs), undefined, { ref: false });
}

function nextUrl(before: number, { limit, ...query }: Omit<ListQuery, "before">) {
  const parameters = new URLSearchParams({ cursor: formatCursor(before), limit: `${limit}` });
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value);
  return `${ownPath}?${parameters.toString()}`;
}

/** Returns the cursor of the page of tasks with a `seq` below `before`; opaque, so that its content may change. */
function formatCursor(before: number): string {
  return Buffer.from(`${before}`).toString("base64url");
}

/** @throws ServiceError `invalid_request` if `cursor` was not made by `formatCursor`. */
function parseCursor(cursor: string): number {
  const before = Number(Buffer.from(cursor, "base64url").toString("latin1"));
  if (Number.isSafeInteger(before) && before > 0 && formatCursor(before) === cursor) return before;
  const detail = `must be the cursor of an earlier page's "next", got ${JSON.stringify(cursor.slice(0, 60))}`;
  throw inputError("query", { pointer: "/cursor", detail });
}
