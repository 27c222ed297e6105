import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import type { FileStore } from "../../files/files.ts";
import type { TaskStore } from "../../stores/store.ts";
import type { ResultFile, Task, TaskFile } from "../../model/task.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { assertIfMatch, ConditionHeaders, findMatch } from "../responses/etag.ts";
import { attachment } from "../responses/content-disposition.ts";
import { createFileStreams, parseRange } from "../responses/file-streams.ts";
import { noContent } from "../responses/empty.ts";
import { requireTask } from "../access/ownership.ts";
import { problems } from "../responses/problem.ts";
import { taskErrors, TaskParams, TaskRef, type SingleTaskRoutesOptions } from "./task.ts";

const bytes = { schema: Type.Unsafe<unknown>({ description: "the file's bytes" }) };
const media = { "video/*": bytes, "audio/*": bytes };
const anyFile = { ...media, "text/vtt": bytes, "application/x-subrip": bytes, "image/*": bytes };

const fileHeaders = {
  etag: { type: "string", description: "strong validator: the file's SHA-256" },
  "accept-ranges": { type: "string", enum: ["bytes"] },
  "repr-digest": { type: "string", description: "SHA-256 of the whole file (RFC 9530)" },
  "content-disposition": { type: "string", description: "`attachment` with the file name" },
};

const mediumPath = "/tasks/:id/file";
const anyPath = "/tasks/:id/files/:name";

const schema = { tags: ["tasks"], params: TaskParams };

const FileParams = Type.Object({
  ...TaskParams.properties,
  name: Type.String({ description: "`name` of one of the task's `files`" }),
});

function getSchema(content: object) {
  return {
    description:
      "A single `Range` gets 206, several ranges get the whole file. Send the `ETag` as " +
      "`If-Range` or `If-Match` to resume a download (the whole file or 412 if it has changed), or as " +
      "`If-None-Match` to get 304 if it is unchanged.",
    headers: ConditionHeaders,
    response: {
      200: { description: "the whole file", headers: fileHeaders, content },
      206: { description: "the requested range", headers: fileHeaders, content },
      304: noContent("the file still has the `ETag` of `If-None-Match`"),
      ...problems(...taskErrors, "file_removed", "precondition_failed", "range_not_satisfiable"),
    },
  };
}

const mediumSchema = {
  ...schema,
  operationId: "getFile",
  summary: "Download the file of a succeeded task",
  ...getSchema(media),
};

const anySchema = {
  ...schema,
  params: FileParams,
  operationId: "getNamedFile",
  summary: "Download one of the files of a succeeded task",
  ...getSchema(anyFile),
};

const deleteSchema = {
  ...schema,
  operationId: "deleteFile",
  summary: "Remove the files of a succeeded task and keep the task",
  description:
    "The task then has no `file` and no `files`, but `removed_at`; further requests change nothing. Downloads of a " +
    "file that have begun go on to their end.",
  headers: Type.Pick(ConditionHeaders, ["if-match"]),
  response: {
    200: TaskRef,
    ...problems(...taskErrors, "cross_site", "not_acceptable", "conflict", "precondition_failed"),
  },
};

interface FileRoutesOptions extends SingleTaskRoutesOptions {
  /** Called with the size of each piece of a file that is sent. */
  onFileBytes: ((bytes: number) => void) | undefined;
}

export const fileRoutes: FastifyPluginAsyncTypebox<FileRoutesOptions> = async (app, { store, files, onFileBytes }) => {
  const streams = createFileStreams(onFileBytes);

  // Fastify's own HEAD routes would read the whole file.
  const hidden = { ...schema, hide: true };
  app.head(mediumPath, { schema: hidden }, async (request, reply) =>
    sendHead(request, reply, await findMedium(store, request)),
  );
  app.head(anyPath, { schema: { ...hidden, params: FileParams } }, async (request, reply) =>
    sendHead(request, reply, await findNamed(store, request)),
  );
  const options = { exposeHeadRoute: false };
  app.get(mediumPath, { ...options, schema: mediumSchema }, async (request, reply) =>
    sendFile(request, reply, await findMedium(store, request)),
  );
  app.get(anyPath, { ...options, schema: anySchema }, async (request, reply) =>
    sendFile(request, reply, await findNamed(store, request)),
  );

  async function sendHead(request: FileRequest, reply: FastifyReply, { id, number, file }: StoredFile) {
    if (isUnmodified(request, file)) return sendNotModified(reply, file);
    const { handle, size } = await openFile(files, id, file, number);
    await handle.close();
    return setFileHeaders(reply, file, size).send();
  }

  async function sendFile(request: FileRequest, reply: FastifyReply, { id, number, file }: StoredFile) {
    if (isUnmodified(request, file)) return sendNotModified(reply, file);
    const { handle, size, markInUse } = await openFile(files, id, file, number);
    const range = rangeOf(request, file, size);
    if (range === "unsatisfiable") {
      await handle.close();
      reply.header("content-range", `bytes */${size}`);
      throw unsatisfiableRangeError(request, size);
    }
    setFileHeaders(reply, file, size);
    if (range !== undefined) {
      reply.code(206).header("content-length", range.end - range.start + 1);
      reply.header("content-range", `bytes ${range.start}-${range.end}/${size}`);
    }
    const keep = () =>
      markInUse().catch((err: unknown) => {
        request.log.warn({ task: id, err }, "the file may be removed while it is sent");
      });
    await keep();
    return reply.send(streams.open(handle, range ?? { start: 0, end: size - 1 }, keep));
  }

  app.delete(mediumPath, { onRequest: requireAcceptJson, schema: deleteSchema }, async (request) => {
    const { id } = request.params;
    const task = await requireTask(store, request);
    if (task.state !== "succeeded") throw notSucceededError(task);
    if (task.file === null) return task;
    assertIfMatch(request.headers["if-match"], etagOf(task.file));
    // The file first: if the service is killed before the record is changed, the request can be repeated.
    await files.remove(id);
    try {
      return await store.update(id, { file: null }, { from: ["succeeded"], hasFile: true });
    } catch (error) {
      const current = await requireTask(store, request);
      if (current.removed_at === null) throw error;
      return current;
    }
  });
};

type FileRequest = Pick<FastifyRequest, "caller" | "headers" | "log"> & { params: { id: string } };

/** What is served of a file. */
type ServedFile = Pick<ResultFile, "name" | "mime_type" | "size" | "sha256">;

/** A file of a task, and its number in the file store. */
interface StoredFile {
  id: string;
  number: number;
  file: ServedFile;
}

/** @throws ServiceError `not_found` if the task does not exist or has no file; `file_removed`; `precondition_failed`. */
async function findMedium(store: TaskStore, request: FileRequest): Promise<StoredFile> {
  const { id, file } = await requireFiles(store, request);
  return matching(request, { id, number: 0, file });
}

/** @throws ServiceError as `findMedium`; `not_found` if it has no file of that name. */
async function findNamed(store: TaskStore, request: FileRequest & { params: { name: string } }): Promise<StoredFile> {
  const { name } = request.params;
  const { id, files = [] } = await requireFiles(store, request);
  const number = files.findIndex((file) => file.name === name);
  const file = files[number];
  if (file !== undefined) return matching(request, { id, number, file });
  throw new ServiceError("not_found", `task ${id} has no file named ${JSON.stringify(name.slice(0, 200))}`);
}

async function requireFiles(store: TaskStore, request: FileRequest): Promise<Task & { file: TaskFile }> {
  const { file, ...task } = await requireTask(store, request);
  const { id, state, removed_at } = task;
  if (state === "succeeded" && file !== null) return { ...task, file };
  if (removed_at === null) throw new ServiceError("not_found", `task ${id} has no file; its state is ${state}`);
  throw new ServiceError("file_removed", `the files of task ${id} were removed at ${removed_at}`);
}

function matching({ headers }: FileRequest, stored: StoredFile): StoredFile {
  assertIfMatch(headers["if-match"], etagOf(stored.file));
  return stored;
}

function notSucceededError({ id, state }: Task): ServiceError {
  return new ServiceError("conflict", `the state of task ${id} is ${state}; it must be succeeded`);
}

/** @throws ServiceError `not_found` if the file is gone; `internal` if its size has changed. */
async function openFile(files: FileStore, id: string, file: ServedFile, number: number) {
  const opened = await files.open(id, number);
  if (opened === undefined) throw new ServiceError("not_found", `the file of task ${id} is gone`);
  if (opened.size === file.size) return opened;
  await opened.handle.close();
  const sizes = `it has ${opened.size} bytes instead of ${file.size}`;
  throw new ServiceError("internal", `the file of task ${id} is damaged: ${sizes}`);
}

function etagOf(file: ServedFile): string {
  return `"${file.sha256}"`;
}

function isUnmodified({ headers }: FileRequest, file: ServedFile): boolean {
  return findMatch(headers["if-none-match"], etagOf(file)) !== undefined;
}

function sendNotModified(reply: FastifyReply, file: ServedFile): FastifyReply {
  return reply.code(304).headers(cacheHeaders(file)).send();
}

/** `If-Range` is compared strongly (RFC 9110 §13.1.5); a date never matches, as no response has one. */
function rangeOf({ headers }: FileRequest, file: ServedFile, size: number) {
  const { range, "if-range": ifRange = etagOf(file) } = headers;
  return range === undefined || ifRange !== etagOf(file) ? undefined : parseRange(range, size);
}

function unsatisfiableRangeError({ headers }: FileRequest, size: number): ServiceError {
  const asked = `Range: ${headers.range?.slice(0, 100)}`;
  return new ServiceError("range_not_satisfiable", `the file has ${size} bytes; got ${asked}`);
}

/** The content is untrusted, so the headers keep browsers from running it as a page of this service. */
function setFileHeaders(reply: FastifyReply, file: ServedFile, size: number): FastifyReply {
  return reply.headers({
    "content-type": file.mime_type,
    "content-length": size,
    "content-disposition": attachment(file.name),
    "accept-ranges": "bytes",
    "repr-digest": `sha-256=:${Buffer.from(file.sha256, "hex").toString("base64")}:`,
    ...cacheHeaders(file),
    "content-security-policy": "default-src 'none'; sandbox",
  });
}

/** Of 200, 206 and 304 alike (RFC 9110 §15.4.5). */
function cacheHeaders(file: ServedFile) {
  return { etag: etagOf(file), "cache-control": "private, no-cache" };
}
