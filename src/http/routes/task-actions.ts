import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import type { TaskStore } from "../../stores/store.ts";
import { requireAcceptJson } from "../accept.ts";
import { problems } from "../problem.ts";
import { TaskParams, TaskRef } from "./task.ts";

/** Routes that change a task's state; the runner follows through the event feed. */
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

  app.post(
    "/tasks/:id/retry",
    {
      schema: {
        operationId: "retryTask",
        summary: "Queue a failed or canceled task again",
        description: "Resets its attempts; after a retryable error the download resumes.",
        tags: ["tasks"],
        params: TaskParams,
        response,
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
