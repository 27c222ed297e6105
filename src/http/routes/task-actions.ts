import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { ServiceError } from "../../errors.ts";
import { taskNotFoundError } from "../../stores/rules.ts";
import type { TaskStore } from "../../stores/store.ts";
import type { Task } from "../../task.ts";
import { requireAcceptJson } from "../accept.ts";
import { problems } from "../problem.ts";
import { TaskParams, TaskRef } from "./task.ts";

/** What clients may do to a task; what runs it learns of it from the feed of changes. */
export const taskActionRoutes: FastifyPluginAsyncTypebox<{ store: TaskStore }> = async (
  app,
  { store },
) => {
  app.addHook("onRequest", requireAcceptJson);
  const response = {
    200: TaskRef,
    ...problems(
      "invalid_request",
      "not_found",
      "not_acceptable",
      "conflict",
      "internal",
      "unavailable",
    ),
  };

  app.post(
    "/tasks/:id/cancel",
    {
      schema: {
        operationId: "cancelTask",
        summary: "Cancel a task that is queued or running",
        tags: ["tasks"],
        params: TaskParams,
        response,
      },
    },
    (request) => store.update(request.params.id, { state: "canceled" }),
  );

  const retry = createRetry(store);
  app.post(
    "/tasks/:id/retry",
    {
      schema: {
        operationId: "retryTask",
        summary: "Queue a task again that has failed or was canceled",
        description: "Resets its attempts; after a retryable error the download resumes.",
        tags: ["tasks"],
        params: TaskParams,
        response,
      },
    },
    (request) => retry(request.params.id),
  );
};

/**
 * A running task may move to `queued` too, but not at a client's wish: hence the look at the state, and
 * one retry at a time, so that the second of two does not interrupt the run that the first has brought.
 */
function createRetry(store: TaskStore): (id: string) => Promise<Task> {
  const underway = new Set<string>();

  async function retry(id: string): Promise<Task> {
    const task = await store.get(id);
    if (task === undefined) throw taskNotFoundError(id);
    if (task.state !== "failed" && task.state !== "canceled") {
      const rule = "only a task that has failed or was canceled can be tried again";
      throw new ServiceError("conflict", `task ${id} is ${task.state}; ${rule}`);
    }
    return store.update(id, { state: "queued", attempts: 0, error: null, file: null });
  }

  return async (id) => {
    if (underway.has(id)) {
      throw new ServiceError("conflict", `task ${id} is being queued again already`);
    }
    underway.add(id);
    try {
      return await retry(id);
    } finally {
      underway.delete(id);
    }
  };
}
