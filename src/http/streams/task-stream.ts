import type { FastifyReply, FastifyRequest } from "fastify";
import { sleep } from "../../async/deadline.ts";
import { mediumName } from "../../files/file-name.ts";
import type { FileStore } from "../../files/files.ts";
import type { MediaStream } from "../../files/media-stream.ts";
import { markStreamMs } from "../../files/stream-journal.ts";
import { StreamBrokenError } from "../../files/stream-run.ts";
import { type ErrorCode, errorCodes, ServiceError } from "../../model/errors.ts";
import { nameInPath } from "../../model/url-parts.ts";
import type { Task } from "../../model/task.ts";
import type { TaskStore } from "../../stores/store.ts";
import { mediumHeaders, sendBytes, type SendFile } from "../responses/send-file.ts";
import {
  type FileStreams,
  type Recipient,
  recipientOf,
  resetConnection,
  withStatedLength,
} from "../responses/file-streams.ts";
import { onClosed } from "../responses/turns.ts";
import { mediumOf } from "../routes/file.ts";
import { refuseBlindRange, takesStream } from "./blind-range.ts";
import { type End, isAbandoned, isKept, paceReaders, TaskWatch } from "./task-watch.ts";

interface StreamDeps {
  store: TaskStore;
  files: FileStore;
  streams: FileStreams;
  sendFile: SendFile;
}

export type SendStream = ReturnType<typeof createStreamSender>;

type StreamRequest = Pick<FastifyRequest, "caller" | "headers" | "log" | "method" | "raw" | "sharer">;

/** How often a run is asked for media that it has fetched since. */
const pollMs = 100;
/** Longest pause between two looks for a stream that has not begun: a thousand clients may wait for one slow page. */
const longestPollMs = 300;
/** The longest time that a timer takes. */
const longestMs = 2 ** 31 - 1;
const firstBytes = 8 * 1024;

/**
 * Creates a function that sends the medium of a task: while it is fetched, its stream from the first byte on; once it is there, its file.
 * What a run makes is sent as fast as the client reads it, and ends only if the task succeeds.
 */
export function createStreamSender({ store, files, streams, sendFile }: StreamDeps) {
  const paceReader = paceReaders();
  /**
   * Responds once there is something to send, to HEAD with the header fields alone.
   *
   * @param maxWaitMs A retry that is due later is not waited for; default: each is.
   * @param read Returns the task as it is now, if the caller may see it.
   * @throws ServiceError why the task failed, if it does before that; as `refuseBlindRange`; of `read`, the file store and the file sender
   */
  return async function sendStream(
    request: StreamRequest,
    reply: FastifyReply,
    { id, read, maxWaitMs = Infinity }: StreamOrder,
  ): Promise<FastifyReply> {
    const isHead = request.method === "HEAD";
    if (!isHead) refuseBlindRange(request);
    const watch = new TaskWatch(id, store.events);
    onClosed(reply.raw, () => watch.close());
    let found: FoundStream | Task;
    try {
      const task = await read();
      watch.note(task.state);
      watch.pauseOf = paceReader(task.owner ?? "", reply.raw);
      const wanted = { files: takesStream(request) ? files : undefined, read, maxWaitMs };
      found = await findStream(task, watch, wanted);
    } catch (error) {
      watch.close();
      throw error;
    }
    if ("state" in found) {
      watch.close();
      // It may have become one.
      refuseCollection(found);
      return sendFile(request, reply, mediumOf(found));
    }
    const { stream, task } = found;
    setHeaders(reply, stream, task);
    if (!isHead) {
      const body = streamBody(streams, found, watch, recipientOf(request, reply));
      body.once("error", () => resetConnection(reply.raw));
      return sendBytes(reply, body);
    }
    watch.close();
    await stream.close();
    return reply.send();
  };
}

/** Returns the bytes of a stream, from the first one on. */
function streamBody(
  streams: FileStreams,
  { stream, first, read: readTask }: FoundStream,
  watch: TaskWatch,
  recipient: Recipient,
) {
  let isFirst = true;
  let hasSentAll = false;
  async function read(into: Buffer): Promise<number | null> {
    if (isFirst) {
      isFirst = false;
      into.set(first);
      return first.length;
    }
    // A little later, there is more than a few bytes.
    if (hasSentAll && watch.end === undefined) await sleep(watch.pauseOf(pollMs), watch.changing);
    const count = await readNext(stream, watch, into);
    hasSentAll = count !== null && count < into.length;
    return count;
  }
  function close(): Promise<void> {
    watch.close();
    return stream.close();
  }
  const source = { read: stream.bytes === null ? read : withStatedLength(read, stream.bytes), close };
  const body = streams.follow(source, recipient, () => isKept(watch, readTask));
  // A client that reads nothing now learns of it, too.
  watch.onEnd = (end) => {
    if (end !== "succeeded") body.destroy(brokenError(end));
  };
  return body;
}

interface StreamOrder {
  id: string;
  read: () => Promise<Task>;
  maxWaitMs?: number;
}

interface FoundStream {
  stream: MediaStream;
  first: Uint8Array;
  task: Task;
  read: StreamOrder["read"];
}

/**
 * Resolves once the task has bytes to send, with the task once it has succeeded.
 *
 * @param wanted `files` undefined: only the file will do.
 * @throws ServiceError why it failed, or waits to be tried again for too long
 */
async function findStream(
  task: Task,
  watch: TaskWatch,
  { files, read, maxWaitMs }: Pick<Required<StreamOrder>, "read" | "maxWaitMs"> & { files: FileStore | undefined },
): Promise<FoundStream | Task> {
  refuseCollection(task);
  for (let pauseMs = pollMs; !watch.isClosed; pauseMs = Math.min(longestPollMs, 1.25 * pauseMs)) {
    const { changing } = watch;
    if (watch.end !== undefined) {
      const ended = await read();
      if (ended.state === "succeeded") return ended;
      throw failureOf(ended);
    }
    if (watch.isQueued && maxWaitMs < Infinity) refuseLateRetry(await read(), maxWaitMs);
    // Its title is known once it runs.
    const opened = files && watch.isRunning ? await openStream(task.id, files) : undefined;
    if (opened !== undefined) return withTask(opened, read);
    await sleep(files && watch.isRunning ? watch.pauseOf(pauseMs) : longestMs, changing);
  }
  throw new ServiceError("unavailable", "the client has gone");
}

type OpenedStream = Omit<FoundStream, "task" | "read">;

/** Adds the task as it is now; closes the stream if that cannot be read. */
async function withTask(opened: OpenedStream, read: StreamOrder["read"]): Promise<FoundStream> {
  try {
    return { ...opened, task: await read(), read };
  } catch (error) {
    await opened.stream.close();
    throw error;
  }
}

/** Returns undefined while there is nothing to send. */
async function openStream(id: string, files: FileStore): Promise<OpenedStream | undefined> {
  const stream = await files.openStream(id);
  if (stream === undefined) return undefined;
  try {
    const memory = Buffer.allocUnsafeSlow(firstBytes);
    const count = await stream.read(memory);
    if (typeof count === "number") return { stream, first: memory.subarray(0, count) };
  } catch (error) {
    if (!(error instanceof StreamBrokenError)) throw error;
  }
  await stream.close();
  return undefined;
}

/** Reads the next bytes, once there are some; `null` after the end of a task that has succeeded. */
async function readNext(stream: MediaStream, watch: TaskWatch, into: Buffer): Promise<number | null> {
  for (;;) {
    // Before the bytes: after it has ended, no more come.
    const { end, changing } = watch;
    const found = await stream.read(into);
    if (typeof found === "number") return found;
    if (end === "succeeded" && found === "end") return null;
    if (end !== undefined || watch.isClosed) throw brokenError(end);
    if (isAbandoned(stream, watch)) throw new StreamBrokenError("the worker of the task is gone");
    await sleep(found === "end" ? markStreamMs : watch.pauseOf(pollMs), changing);
  }
}

function brokenError(end: End | undefined): StreamBrokenError {
  return new StreamBrokenError(`the stream of the task ends too early: ${end ?? "the client has gone"}`);
}

/** @throws ServiceError `conflict` */
function refuseCollection({ id, kind }: Task): void {
  if (kind === "collection") {
    throw new ServiceError("conflict", `task ${id} is a collection, which has no medium; its members have`);
  }
}

function failureOf({ id, state, error }: Task, retryAfterS?: number): ServiceError {
  if (error === null) return new ServiceError("conflict", `task ${id} has no medium; its state is ${state}`);
  const { message, retryable, upstream_status: upstreamStatus } = error;
  const code = error.code in errorCodes ? (error.code as ErrorCode) : "internal";
  return new ServiceError(code, message, { retryable, retryAfterS, upstreamStatus });
}

/** @throws ServiceError why the latest run failed, if the task waits longer than that for its next one */
function refuseLateRetry(task: Task, maxWaitMs: number): void {
  const { state, error, retry_at: retryAt, updated_at: updatedAt } = task;
  if (state !== "queued" || error === null || retryAt === undefined) return;
  // The clock may have been set back since.
  const sinceMs = Math.max(Date.now(), Date.parse(updatedAt));
  const waitMs = Date.parse(retryAt) - sinceMs;
  if (waitMs > maxWaitMs) throw failureOf(task, waitMs / 1000);
}

function setHeaders(reply: FastifyReply, { mimeType, ext, bytes }: MediaStream, { id, url, info }: Task): void {
  reply.headers({
    ...mediumHeaders(mimeType, mediumName(info?.title ?? nameInPath(url), ext, id)),
    ...(bytes !== null && { "content-length": bytes }),
    "accept-ranges": "none",
    "cache-control": "private, no-store",
  });
}
