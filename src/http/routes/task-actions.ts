import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import type { TaskStore } from "../../stores/store.ts";
import { requireAcceptJson } from "../accept.ts";
import { problems } from "../problem.ts";
import { taskErrors, TaskParams, TaskRef } from "./task.ts";

/** Routes that change a task's state; the runner follows through the event feed. */
export const taskActionRoutes: FastifyPluginAsyncTypebox<{ store: TaskStore }> = async (
  app,
  { store },
) => {
  app.addHook("onRequest", requireAcceptJson);
  const schema = {
    tags: ["tasks"],
    params: TaskParams,
    response: {
      200: TaskRef,
      ...problems(...taskErrors, "cross_site", "not_acceptable", "conflict"),
    },
  };

  app.post(
    "/tasks/:id/cancel",
    {
      schema: {
        ...schema,
        operationId: "cancelTask",
        summary: "Cancel a task that is queued or running",
      },
    },
    (request) => store.update(request.params.id, { state: "canceled" }),
  );

  app.post(
    "/tasks/:id/retry",
    {
      schema: {
        ...schema,
        operationId: "retryTask",
        summary: "Queue a failed or canceled task again",
        description: "Resets its attempts; after a retryable error the download resumes.",
      },
    },
    (request) =>
      store.update(
        request.params.id,
        { state: "queued", attempts: 0, error: null, file: null },
        // A running task may become queued too, but not by a client's request.
        { from: ["failed", "canceled"] },
      ),
  );
};
