import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import type { FileStore } from "../../files/files.ts";
import { taskNotFoundError } from "../../stores/rules.ts";
import type { TaskStore } from "../../stores/store.ts";
import type { Task } from "../../task.ts";
import { requireAcceptJson } from "../accept.ts";
import { etagOf, matches } from "../etag.ts";
import { problems } from "../problem.ts";
import { redirectTo } from "../redirect.ts";

/** Stands for the schema `Task` in the OpenAPI document's components. */
export const TaskRef = Type.Unsafe<Task>(Type.Ref("Task#"));

export const TaskParams = Type.Object({ id: Type.String({ description: "the task's id" }) });

interface SingleTaskRoutesOptions {
  store: TaskStore;
  files: FileStore;
}

export const singleTaskRoutes: FastifyPluginAsyncTypebox<SingleTaskRoutesOptions> = async (
  app,
  { store, files },
) => {
  app.addHook("onRequest", requireAcceptJson);

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
          200: { ...TaskRef, headers: { etag: { type: "string" } } },
          304: Type.Null({ description: "it has not changed since the `ETag` of If-None-Match" }),
          ...problems("invalid_request", "not_found", "not_acceptable", "internal", "unavailable"),
        },
      },
    },
    async (request, reply) => {
      const task = await store.get(request.params.id);
      if (task !== undefined) {
        const etag = etagOf(task);
        reply.header("etag", etag);
        return matches(request.headers["if-none-match"], etag) ? reply.code(304).send(null) : task;
      }
      throw taskNotFoundError(request.params.id);
    },
  );

  app.delete(
    "/tasks/:id",
    {
      schema: {
        operationId: "deleteTask",
        summary: "Delete a task, whatever its state",
        description: "Ends its run, and removes its file.",
        tags: ["tasks"],
        params: TaskParams,
        response: {
          204: Type.Null({ description: "it is gone" }),
          ...problems("invalid_request", "not_found", "not_acceptable", "internal", "unavailable"),
        },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const task = await store.get(id);
      // First, and nothing else has it in hand any more: a file that no record tells of would stay. What
      // other tasks have on the disk is removed by what runs them.
      if (task?.state === "succeeded") await files.remove(id);
      await store.delete(id);
      return reply.code(204).send(null);
    },
  );

  app.all("/tasks", { schema: { hide: true } }, redirectTo("/tasks/"));
};
