import etag from "@fastify/etag";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import { ServiceError } from "../../errors.ts";
import type { TaskStore } from "../../stores/store.ts";
import type { Task } from "../../task.ts";
import { answerJson } from "../json.ts";
import { problems } from "../problem.ts";

/** Stands for the schema `Task` in the OpenAPI document's components. */
export const TaskRef = Type.Unsafe<Task>(Type.Ref("Task#"));

const TaskParams = Type.Object({ id: Type.String({ description: "the task's id" }) });

export const singleTaskRoutes: FastifyPluginAsyncTypebox<{ store: TaskStore }> = async (
  app,
  { store },
) => {
  app.addHook("onRequest", answerJson);
  await app.register(etag);

  app.get(
    "/tasks/:id",
    {
      schema: {
        operationId: "getTask",
        summary: "Get one task",
        description: "Send the `ETag` back as `If-None-Match` to get 304 while nothing changed.",
        tags: ["tasks"],
        params: TaskParams,
        response: {
          200: TaskRef,
          304: Type.Null({ description: "it has not changed since the `ETag` of If-None-Match" }),
          ...problems("not_found", "not_acceptable", "internal", "unavailable"),
        },
      },
    },
    async (request) => {
      const task = await store.get(request.params.id);
      if (task !== undefined) return task;
      throw new ServiceError("not_found", `there is no task ${request.params.id.slice(0, 100)}`);
    },
  );

  app.delete(
    "/tasks/:id",
    {
      schema: {
        operationId: "deleteTask",
        summary: "Delete a task, whatever its state",
        tags: ["tasks"],
        params: TaskParams,
        response: {
          204: Type.Null({ description: "it is gone" }),
          ...problems("not_found", "not_acceptable", "internal", "unavailable"),
        },
      },
    },
    async (request, reply) => {
      await store.delete(request.params.id);
      return reply.code(204).send(null);
    },
  );
};
