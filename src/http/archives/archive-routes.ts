import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import type { FastifyReply } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import type { TaskStore } from "../../stores/store.ts";
import { requireTask } from "../access/ownership.ts";
import { archive as zip, getFileSchema } from "../responses/send-file.ts";
import { assertHasFiles, type FileRequest } from "../routes/file.ts";
import { taskErrors, TaskParams } from "../routes/task.ts";
import type { ArchiveSender } from "./archive-sender.ts";

const path = "/tasks/:id/files.zip";

const schema = { tags: ["tasks"], params: TaskParams };

const getSchema = {
  ...schema,
  operationId: "getArchive",
  summary: "Download all files of a task, or of all tasks of a collection, as one ZIP archive",
  ...getFileSchema(zip, [...taskErrors, "file_removed"]),
};

interface ArchiveRoutesOptions {
  store: TaskStore;
  archives: ArchiveSender;
}

/** The route of all files of a task in one. */
export const archiveRoutes: FastifyPluginAsyncTypebox<ArchiveRoutesOptions> = async (app, { store, archives }) => {
  /** @throws ServiceError as `assertHasFiles`; `not_found` if no task of a collection has a file; `precondition_failed` */
  async function send(request: FileRequest, reply: FastifyReply): Promise<FastifyReply> {
    const task = await requireTask(store, request);
    if (task.kind !== "collection") assertHasFiles(task);
    if (await archives.send(request, reply, task)) return reply;
    throw new ServiceError("not_found", `no task of collection ${task.id} has a file`);
  }

  app.head(path, { schema: { ...schema, hide: true } }, send);
  app.get(path, { exposeHeadRoute: false, schema: getSchema }, send);
};
