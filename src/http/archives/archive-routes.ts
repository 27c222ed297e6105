import { setImmediate } from "node:timers/promises";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { ServiceError } from "../../model/errors.ts";
import type { Task } from "../../model/task.ts";
import type { TaskStore } from "../../stores/store.ts";
import { requireTask } from "../access/ownership.ts";
import { assertIfMatch } from "../responses/etag.ts";
import { createFileStreams } from "../responses/file-streams.ts";
import {
  archive as zip,
  getFileSchema,
  type Representation,
  sendRepresentation,
  sendRepresentationHead,
} from "../responses/send-file.ts";
import { type FileRequest, type FileRoutesOptions, requireFiles } from "../routes/file.ts";
import { taskErrors, TaskParams } from "../routes/task.ts";
import { type Archive, createArchive, createArchiveStreams, filesOf } from "./archive.ts";

const path = "/tasks/:id/files.zip";

const schema = { tags: ["tasks"], params: TaskParams };

const getSchema = {
  ...schema,
  operationId: "getArchive",
  summary: "Download all files of a task, or of all tasks of a collection, as one ZIP archive",
  ...getFileSchema(zip, [...taskErrors, "file_removed"]),
};

/** The route of all files of a task in one. */
export const archiveRoutes: FastifyPluginAsyncTypebox<FileRoutesOptions> = async (
  app,
  { store, files, onFileBytes },
) => {
  const streams = createArchiveStreams(files, createFileStreams(onFileBytes), createFileStreams());

  app.head(path, { schema: { ...schema, hide: true } }, async (request, reply) => {
    const { served } = await findArchive(store, request);
    return sendRepresentationHead(request, reply, served);
  });
  app.get(path, { exposeHeadRoute: false, schema: getSchema }, async (request, reply) => {
    const { served, archive } = await findArchive(store, request);
    return sendRepresentation(request, reply, served, (range) => streams.open(archive, range));
  });
};

/** @throws ServiceError as `requireFiles`; `not_found` if no task of a collection has a file; `precondition_failed` */
async function findArchive(
  store: TaskStore,
  request: FileRequest,
): Promise<{ served: Representation; archive: Archive }> {
  const task = await requireTask(store, request);
  const isCollection = task.kind === "collection";
  const archive = createArchive(
    isCollection ? await membersWithFiles(store, task) : [await requireFiles(store, request)],
  );
  if (archive.files.length === 0) {
    throw new ServiceError("not_found", `no task of collection ${task.id} has a file`);
  }
  const etag = `"zip-${archive.id}"`;
  assertIfMatch(request.headers["if-match"], etag);
  const name = `${nameOf(task)}.zip`;
  return { served: { name, mime_type: "application/zip", size: archive.size, etag }, archive };
}

function nameOf({ id, file, info }: Task): string {
  return file === null ? (info?.title ?? id) : file.name.replace(/\.[^.]{1,10}$/, "");
}

/** Reads all members, page by page, between which other requests are answered; only what is needed of them is kept. */
async function membersWithFiles(store: TaskStore, { id: parent }: Task): Promise<Task[]> {
  const found: Task[] = [];
  for (let before: number | undefined; ;) {
    const { tasks, next } = await store.list({ parent, limit: 200, before });
    found.push(...tasks.filter((task) => filesOf(task).length > 0).map((task) => ({ ...task, info: null })));
    if (next === undefined) return found;
    before = next;
    await setImmediate();
  }
}
