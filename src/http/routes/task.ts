import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import type { FileStore } from "../../files/files.ts";
import { markRemoved } from "../../runner/file-cleanup.ts";
import type { Library } from "../../runner/library/library.ts";
import { isServiceError, ServiceError } from "../../model/errors.ts";
import { oneOf } from "../../model/schema.ts";
import { retryChange } from "../../stores/member-rules.ts";
import { damagedAs, taskNotFoundError } from "../../stores/rules.ts";
import type { TaskStore } from "../../stores/store.ts";
import { isActive, type Task } from "../../model/task.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { assertIfMatch, ConditionHeaders, etagOf, findMatch } from "../responses/etag.ts";
import { noContent } from "../responses/empty.ts";
import { assertVisible, requireTask } from "../access/ownership.ts";
import type { ChangeInTurn } from "../access/request-limits.ts";
import { PreferHeaders, type TaskWaits } from "../responses/prefer-wait.ts";
import { problems } from "../responses/problem.ts";
import type { RecordPlaces } from "../responses/record-places.ts";
import { createTurns, longJson, untilClosed } from "../responses/turns.ts";

/** A reference to the schema `Task` among the OpenAPI document's components. */
export const TaskRef = Type.Unsafe<Task>(Type.Ref("Task#", { description: "the task" }));

export const TaskParams = Type.Object({ id: Type.String({ description: "the task's id" }) });

/** How every route of one task may fail. */
export const taskErrors = ["invalid_request", "not_found", "internal", "unavailable"] as const;

interface TaskActionRoutesOptions {
  store: TaskStore;
  inTurn: ChangeInTurn;
}

export interface SingleTaskRoutesOptions extends TaskActionRoutesOptions {
  files: FileStore;
  library?: Pick<Library, "remove"> | undefined;
}

/** Of requests that remove the files of a task. */
export const RemovalQuery = Type.Object({
  library: Type.Optional(
    oneOf(
      ["true", "false"],
      "`true`: also its files in the library that are as they were put there; default: these stay",
    ),
  ),
});

const getSchema = {
  operationId: "getTask",
  summary: "Get one task",
  description: "Send the `ETag` as `If-None-Match` to get 304 if the task is unchanged.",
  tags: ["tasks"],
  params: TaskParams,
  headers: Type.Composite([Type.Pick(ConditionHeaders, ["if-match", "if-none-match"]), PreferHeaders]),
  response: {
    200: { ...TaskRef, headers: { etag: { type: "string" }, "preference-applied": { type: "string" } } },
    304: noContent("the task still has the `ETag` of `If-None-Match`"),
    ...problems(...taskErrors, "not_acceptable", "precondition_failed"),
  },
};

const deleteSchema = {
  operationId: "deleteTask",
  summary: "Delete a task in any state",
  description:
    "Ends its run and removes its file. `DELETE /tasks/{id}/file` removes the file alone. " +
    "Deleting a collection also deletes its members that a collection has made and that are in no other one.",
  tags: ["tasks"],
  params: TaskParams,
  querystring: RemovalQuery,
  headers: Type.Pick(ConditionHeaders, ["if-match"]),
  response: {
    204: noContent("the task is deleted"),
    ...problems(...taskErrors, "cross_site", "not_acceptable", "conflict", "precondition_failed"),
  },
};

export const singleTaskRoutes: FastifyPluginAsyncTypebox<
  SingleTaskRoutesOptions & { waits: TaskWaits; records: RecordPlaces }
> = async (app, { store, files, library, waits, records, inTurn }) => {
  app.addHook("onRequest", requireAcceptJson);
  const turns = createTurns();

  app.get("/tasks/:id", { schema: getSchema }, async (request, reply) => {
    const { id } = request.params;
    const untilTurn = () => turns.wait(request, untilClosed(reply));
    const place = await records.wait(request, reply);
    if (turns.isTaken()) await untilTurn();
    const task = await waits.wait(id, request.headers, reply, () => requireTask(store, request), place.release);
    if (task === undefined) throw taskNotFoundError(id);
    // Many may have waited for the task.
    if (request.headers.prefer !== undefined) {
      await place.retake();
      if (turns.isTaken()) await untilTurn();
    }
    const text = JSON.stringify(task);
    if (text.length > longJson) await untilTurn();
    else place.release();
    const etag = etagOf(text);
    assertIfMatch(request.headers["if-match"], etag);
    const match = findMatch(request.headers["if-none-match"], etag);
    reply.header("etag", match ?? etag);
    if (match === undefined) return task;
    return reply.code(304).header("vary", "accept-encoding").send();
  });

  app.delete("/tasks/:id", { schema: deleteSchema }, (request, reply) =>
    inTurn(request, reply, async () => {
      const { id } = request.params;
      await assertVisible(store, id, request.caller);
      let task = await findReadable(store, id);
      if (task !== "damaged" && task !== undefined)
        assertIfMatch(request.headers["if-match"], etagOf(JSON.stringify(task)));
      const isInLibrary = request.query.library === "true";
      if (isInLibrary && library !== undefined) {
        await endRuns(store, task);
        task = await findReadable(store, id);
      }
      // The files of a task in another state are removed by the runner.
      const members = task === "damaged" || task?.kind === undefined ? [] : await store.ownMembers(id);
      if (isInLibrary) {
        for (const member of members) await removeFromLibrary(library, await findReadable(store, member));
        await removeFromLibrary(library, task);
      }
      // Only now: if the library refuses, nothing is removed. The files before the record, as a file without a record would stay.
      for (const marked of chunksOf(members, marksAtATime)) {
        await Promise.all(marked.map((member) => markRemoved(store, member)));
      }
      for (const member of members) await files.remove(member);
      await markRemoved(store, id);
      if (task === "damaged" || task?.state === "succeeded") await files.remove(id);
      await store.delete(id);
      return reply.code(204).send();
    }),
  );
};

/** Cancels a task that could still succeed, with its members: what it then put into the library would stay there. */
async function endRuns(store: TaskStore, task: Task | "damaged" | undefined): Promise<void> {
  if (task === undefined || task === "damaged" || !isActive(task.state)) return;
  try {
    await store.update(task.id, { state: "canceled" });
  } catch (error) {
    // It has just ended, or was deleted.
    if (!isServiceError(error, "conflict", "not_found")) throw error;
  }
}

/** Members of a collection whose records are changed at the same time. */
const marksAtATime = 64;

function chunksOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size));
}

/**
 * Removes the files of a task from the library.
 *
 * @throws ServiceError `conflict` if it has some there, and the service has no library now
 */
export async function removeFromLibrary(
  library: SingleTaskRoutesOptions["library"],
  task: Task | "damaged" | undefined,
): Promise<void> {
  if (task === undefined || task === "damaged") return;
  if (library !== undefined) return library.remove(task);
  const [file] = task.library ?? [];
  if (file === undefined) return;
  const message = `cannot remove ${JSON.stringify(file.path)} from the library: LIBRARY_DIR is not set`;
  throw new ServiceError("conflict", message);
}

/** Returns the task, undefined if there is none, or `"damaged"`: such a record can be deleted too. */
function findReadable(store: TaskStore, id: string): Promise<Task | "damaged" | undefined> {
  return store.get(id).catch(damagedAs("damaged" as const));
}

const actionSchema = {
  tags: ["tasks"],
  params: TaskParams,
  response: {
    200: TaskRef,
    ...problems(...taskErrors, "cross_site", "not_acceptable", "conflict"),
  },
};

const cancelSchema = {
  ...actionSchema,
  operationId: "cancelTask",
  summary: "Cancel a task that is queued or running",
};

const finishSchema = {
  ...actionSchema,
  operationId: "finishTask",
  summary: "End the recording of a live stream and keep what there is",
  description:
    "The task then succeeds with what was recorded. It must be running with `progress.is_live`; " +
    "further requests change nothing until it has ended.",
};

const retrySchema = {
  ...actionSchema,
  operationId: "retryTask",
  summary: "Queue a failed or canceled task again",
  description: "Resets its attempts; after a retryable error the download resumes.",
  response: { ...actionSchema.response, ...problems("too_many_requests", "quota_exceeded") },
};

/** Routes that change a task's state; the runner follows through the event feed. */
export const taskActionRoutes: FastifyPluginAsyncTypebox<TaskActionRoutesOptions> = async (app, { store, inTurn }) => {
  app.addHook("onRequest", requireAcceptJson);

  app.post("/tasks/:id/cancel", { schema: cancelSchema }, (request, reply) =>
    inTurn(request, reply, async () => {
      const { id } = request.params;
      await assertVisible(store, id, request.caller);
      return store.update(id, { state: "canceled" });
    }),
  );

  app.post("/tasks/:id/finish", { schema: finishSchema }, (request, reply) =>
    inTurn(request, reply, async () => {
      const task = await requireTask(store, request);
      const { id, state } = task;
      if (state === "running" && task.finish_requested === true) return task;
      if (state === "running" && task.progress?.is_live !== true) throw notLiveError(id);
      return store.update(id, { finish_requested: true }, { from: ["running"] });
    }),
  );

  app.post("/tasks/:id/retry", { schema: retrySchema }, (request, reply) =>
    inTurn(request, reply, async () => {
      const { id } = request.params;
      await assertVisible(store, id, request.caller);
      // A running task may become queued too, but not by a client's request.
      return store.update(id, retryChange, { from: ["failed", "canceled"] });
    }),
  );
};

function notLiveError(id: string): ServiceError {
  const rule = "only the recording of a live stream can be finished";
  return new ServiceError("conflict", `task ${id} is not recording a live stream; ${rule}`);
}
