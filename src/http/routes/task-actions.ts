import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { ServiceError } from "../../model/errors.ts";
import type { TaskStore } from "../../stores/store.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { assertVisible, requireTask } from "../access/ownership.ts";
import { problems } from "../responses/problem.ts";
import { taskErrors, TaskParams, TaskRef } from "./task.ts";

const schema = {
  tags: ["tasks"],
  params: TaskParams,
  response: {
    200: TaskRef,
    ...problems(...taskErrors, "cross_site", "not_acceptable", "conflict"),
  },
};

const cancelSchema = {
  ...schema,
  operationId: "cancelTask",
  summary: "Cancel a task that is queued or running",
};

const finishSchema = {
  ...schema,
  operationId: "finishTask",
  summary: "End the recording of a live stream and keep what there is",
  description:
    "The task then succeeds with what was recorded. It must be running with `progress.is_live`; " +
    "further requests change nothing until it has ended.",
};

const retrySchema = {
  ...schema,
  operationId: "retryTask",
  summary: "Queue a failed or canceled task again",
  description: "Resets its attempts; after a retryable error the download resumes.",
  response: { ...schema.response, ...problems("too_many_requests", "quota_exceeded") },
};

/** Routes that change a task's state; the runner follows through the event feed. */
export const taskActionRoutes: FastifyPluginAsyncTypebox<{ store: TaskStore }> = async (app, { store }) => {
  app.addHook("onRequest", requireAcceptJson);

  app.post("/tasks/:id/cancel", { schema: cancelSchema }, async ({ params: { id }, caller }) => {
    await assertVisible(store, id, caller);
    return store.update(id, { state: "canceled" });
  });

  app.post("/tasks/:id/finish", { schema: finishSchema }, async (request) => {
    const task = await requireTask(store, request);
    const { id, state } = task;
    if (state === "running" && task.finish_requested === true) return task;
    if (state === "running" && task.progress?.is_live !== true) throw notLiveError(id);
    return store.update(id, { finish_requested: true }, { from: ["running"] });
  });

  app.post("/tasks/:id/retry", { schema: retrySchema }, async ({ params: { id }, caller }) => {
    await assertVisible(store, id, caller);
    return store.update(
      id,
      { state: "queued", attempts: 0, error: null, file: null },
      // A running task may become queued too, but not by a client's request.
      { from: ["failed", "canceled"] },
    );
  });
};

function notLiveError(id: string): ServiceError {
  const rule = "only the recording of a live stream can be finished";
  return new ServiceError("conflict", `task ${id} is not recording a live stream; ${rule}`);
}
