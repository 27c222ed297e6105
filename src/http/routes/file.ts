import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ServiceError } from "../../errors.ts";
import type { FileStore } from "../../files/files.ts";
import { taskNotFoundError } from "../../stores/rules.ts";
import type { TaskStore } from "../../stores/store.ts";
import type { TaskFile } from "../../task.ts";
import { attachment } from "../content-disposition.ts";
import { matches } from "../etag.ts";
import { problems } from "../problem.ts";
import { type IntRange, readRange } from "../range.ts";
import { TaskParams } from "./task.ts";

const bytes = { schema: Type.Unsafe<unknown>({ description: "the file's bytes" }) };
const media = { "video/*": bytes, "audio/*": bytes };

const fileHeaders = {
  etag: { type: "string", description: "strong; made of the file's SHA-256" },
  "accept-ranges": { type: "string", enum: ["bytes"] },
  "content-disposition": { type: "string", description: "`attachment`, with the file's name" },
};

interface FileRoutesOptions {
  store: TaskStore;
  files: FileStore;
}

export const fileRoutes: FastifyPluginAsyncTypebox<FileRoutesOptions> = async (
  app,
  { store, files },
) => {
  const path = "/tasks/:id/file";
  const schema = { params: TaskParams };

  // Of its own: the HEAD that Fastify makes of a GET reads the whole file.
  app.head(path, { schema: { ...schema, hide: true } }, async (request, reply) => {
    const { id } = request.params;
    const file = await findFile(store, id);
    if (isKnown(request, file)) return answerKnown(reply, file);
    const { handle, size } = await openFile(files, id, file);
    await handle.close();
    return describe(reply, file, size).send();
  });

  app.get(
    path,
    {
      exposeHeadRoute: false,
      schema: {
        ...schema,
        operationId: "getFile",
        summary: "Fetch the file of a task that has succeeded",
        description:
          "One `Range` is answered with 206, several with the whole file. Send the `ETag` back as " +
          "`If-Range` to go on with a download, or as `If-None-Match` to get 304 if you have it.",
        tags: ["tasks"],
        response: {
          200: { description: "the whole file", headers: fileHeaders, content: media },
          206: { description: "the range", headers: fileHeaders, content: media },
          304: Type.Null({ description: "it is the one with the `ETag` of If-None-Match" }),
          ...problems(
            "invalid_request",
            "not_found",
            "range_not_satisfiable",
            "internal",
            "unavailable",
          ),
        },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const file = await findFile(store, id);
      if (isKnown(request, file)) return answerKnown(reply, file);
      const { handle, size } = await openFile(files, id, file);
      const range = rangeOf(request, file, size);
      if (range === "unsatisfiable") {
        await handle.close();
        throw noSuchRange(request, reply, size);
      }
      describe(reply, file, size);
      if (range !== undefined) describeRange(reply, range, size);
      // With its end told the stream ends at the last byte, not with one more read behind it, within
      // which the client, who has it all, hangs up.
      const { start, end } = range ?? { start: 0, end: Math.max(0, size - 1) };
      return reply.send(handle.createReadStream({ start, end, highWaterMark: 256 * 1024 }));
    },
  );
};

/** @throws ServiceError `not_found` where there is no task, or no file of it. */
async function findFile(store: TaskStore, id: string): Promise<TaskFile> {
  const task = await store.get(id);
  if (task === undefined) throw taskNotFoundError(id);
  if (task.state === "succeeded" && task.file !== null) return task.file;
  throw new ServiceError("not_found", `task ${id} is ${task.state}; it has no file`);
}

/** @throws ServiceError `not_found` where it is gone; `internal` where it is not what was stored. */
async function openFile(files: FileStore, id: string, file: TaskFile) {
  const opened = await files.open(id);
  if (opened === undefined) throw new ServiceError("not_found", `the file of task ${id} is gone`);
  if (opened.size === file.size) return opened;
  await opened.handle.close();
  const sizes = `it has ${opened.size} bytes instead of ${file.size}`;
  throw new ServiceError("internal", `the file of task ${id} is damaged: ${sizes}`);
}

function etagOf(file: TaskFile): string {
  return `"${file.sha256}"`;
}

function isKnown({ headers }: FastifyRequest, file: TaskFile): boolean {
  return matches(headers["if-none-match"], etagOf(file));
}

function answerKnown(reply: FastifyReply, file: TaskFile): FastifyReply {
  return reply.code(304).header("etag", etagOf(file)).send(null);
}

/** `If-Range` is compared strongly (RFC 9110 §13.1.5); a date never matches, as none was sent. */
function rangeOf({ headers }: FastifyRequest, file: TaskFile, size: number) {
  const { range, "if-range": ifRange = etagOf(file) } = headers;
  return range === undefined || ifRange !== etagOf(file) ? undefined : readRange(range, size);
}

function noSuchRange({ headers }: FastifyRequest, reply: FastifyReply, size: number): ServiceError {
  reply.header("content-range", `bytes */${size}`);
  const asked = `Range: ${headers.range?.slice(0, 100)}`;
  return new ServiceError("range_not_satisfiable", `the file has ${size} bytes; got ${asked}`);
}

/** What is in the file comes from strangers: no browser is to take it for a page of this service. */
function describe(reply: FastifyReply, file: TaskFile, size: number): FastifyReply {
  return reply.headers({
    "content-type": file.mime_type,
    "content-length": size,
    "content-disposition": attachment(file.name),
    "accept-ranges": "bytes",
    etag: etagOf(file),
    "cache-control": "private, no-cache",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox",
  });
}

function describeRange(reply: FastifyReply, { start, end }: IntRange, size: number): void {
  reply.code(206).headers({
    "content-length": end - start + 1,
    "content-range": `bytes ${start}-${end}/${size}`,
  });
}
