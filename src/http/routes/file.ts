import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import { ServiceError } from "../../model/errors.ts";
import { markRemoved } from "../../runner/file-cleanup.ts";
import type { ResultFile, Task, TaskFile } from "../../model/task.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { assertIfMatch, ConditionHeaders } from "../responses/etag.ts";
import { anyFile, fileTag, getFileSchema, media, type SendFile, type StoredFile } from "../responses/send-file.ts";
import { requireTask } from "../access/ownership.ts";
import { problems } from "../responses/problem.ts";
import {
  RemovalQuery,
  removeFromLibrary,
  taskErrors,
  TaskParams,
  TaskRef,
  type SingleTaskRoutesOptions,
} from "./task.ts";

const mediumPath = "/tasks/:id/file";
const anyPath = "/tasks/:id/files/:name";

const schema = { tags: ["tasks"], params: TaskParams };
const fileErrors = [...taskErrors, "file_removed"] as const;

const FileParams = Type.Object({
  ...TaskParams.properties,
  name: Type.String({ description: "`name` of one of the task's `files`" }),
});

const mediumSchema = {
  ...schema,
  operationId: "getFile",
  summary: "Download the file of a succeeded task",
  ...getFileSchema(media, fileErrors),
};

const anySchema = {
  ...schema,
  params: FileParams,
  operationId: "getNamedFile",
  summary: "Download one of the files of a succeeded task",
  ...getFileSchema(anyFile, fileErrors),
};

const deleteSchema = {
  ...schema,
  operationId: "deleteFile",
  summary: "Remove the files of a succeeded task and keep the task",
  description:
    "The task then has no `file` and no `files`, but `removed_at`; further requests change nothing. Downloads of a " +
    "file that have begun go on for up to ten minutes.",
  querystring: RemovalQuery,
  headers: Type.Pick(ConditionHeaders, ["if-match"]),
  response: {
    200: TaskRef,
    ...problems(...taskErrors, "cross_site", "not_acceptable", "conflict", "precondition_failed"),
  },
};

interface FileRoutesOptions extends SingleTaskRoutesOptions {
  sendFile: SendFile;
}

export const fileRoutes: FastifyPluginAsyncTypebox<FileRoutesOptions> = async (
  app,
  { store, files, library, sendFile, inTurn },
) => {
  app.get(mediumPath, { schema: mediumSchema }, async (request, reply) =>
    sendFile(request, reply, mediumOf(await requireTask(store, request))),
  );
  app.get(anyPath, { schema: anySchema }, async (request, reply) =>
    sendFile(request, reply, requireNamed(await requireTask(store, request), request.params.name)),
  );

  app.delete(mediumPath, { onRequest: requireAcceptJson, schema: deleteSchema }, (request, reply) =>
    inTurn(request, reply, async () => {
      const { id } = request.params;
      const task = await requireTask(store, request);
      if (task.state !== "succeeded") throw notSucceededError(task);
      if (task.file === null) {
        // As a service that was killed, or a disk that failed, may have left it.
        await files.remove(id);
        return task;
      }
      assertIfMatch(request.headers["if-match"], fileTag(task.file));
      const isInLibrary = request.query.library === "true";
      if (isInLibrary) await removeFromLibrary(library, task);
      const change = isInLibrary ? { library: [] satisfies [] } : {};
      const marked = await markRemoved(store, id, change);
      await files.remove(id);
      if (marked !== undefined) return marked;
      try {
        return await store.update(id, { ...change, file: null }, { from: ["succeeded"], hasFile: true });
      } catch (error) {
        const current = await requireTask(store, request);
        if (current.removed_at === null) throw error;
        return current;
      }
    }),
  );
};

/** Returns the medium of a task. @throws ServiceError as `assertHasFiles` */
export function mediumOf(task: Task): StoredFile {
  assertHasFiles(task);
  return { id: task.id, number: 0, file: task.file };
}

/** @throws ServiceError as `assertHasFiles`; `not_found` if it has no file of that name */
function requireNamed(task: Task, name: string): StoredFile {
  assertHasFiles(task);
  const found = findFile(task, name);
  if (found !== undefined) return found;
  throw new ServiceError("not_found", `task ${task.id} has no file named ${JSON.stringify(name.slice(0, 200))}`);
}

/** Returns the file of that name; undefined if the task has none now. */
export function findFile(task: Task, name: string): StoredFile | undefined {
  const files = filesOf(task);
  const number = files.findIndex((file) => file.name === name);
  const file = files[number];
  return file && { id: task.id, number, file };
}

/** Returns the files that the task has now, in the order of the file store. */
export function filesOf({ state, file, files }: Task): ResultFile[] {
  if (state !== "succeeded" || file === null) return [];
  return files ?? [{ kind: "media", ...file }];
}

/** @throws ServiceError `not_found` if the task has no file; `file_removed`. */
export function assertHasFiles(task: Task): asserts task is Task & { file: TaskFile } {
  const { id, state, file, removed_at } = task;
  if (state === "succeeded" && file !== null) return;
  if (removed_at === null) throw new ServiceError("not_found", `task ${id} has no file; its state is ${state}`);
  throw new ServiceError("file_removed", `the files of task ${id} were removed at ${removed_at}`);
}

function notSucceededError({ id, state }: Task): ServiceError {
  return new ServiceError("conflict", `the state of task ${id} is ${state}; it must be succeeded`);
}
