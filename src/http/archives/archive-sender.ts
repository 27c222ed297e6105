import type { FastifyReply, FastifyRequest } from "fastify";
import { fileName } from "../../files/file-name.ts";
import type { FileStore } from "../../files/files.ts";
import type { Task } from "../../model/task.ts";
import type { Template } from "../../runner/library/template.ts";
import type { IntRange } from "../../net/byte-range.ts";
import type { TaskStore } from "../../stores/store.ts";
import { assertIfMatch } from "../responses/etag.ts";
import { createFileStreams, type FileStreams, isFlushed } from "../responses/file-streams.ts";
import { type SentRequest, sendRepresentation } from "../responses/send-file.ts";
import { createTurns, untilClosed } from "../responses/turns.ts";
import { createArchiver, createArchiveStreams, filesOf } from "./archive.ts";

interface ArchiveOptions {
  store: TaskStore;
  files: FileStore;
  /** What names the files. */
  template: Template;
  streams: FileStreams;
}

type ArchiveRequest = SentRequest & Pick<FastifyRequest, "caller">;

export type ArchiveSender = ReturnType<typeof createArchiveSender>;

/** Creates a sender of all files of a task, or of all members of a collection, as one archive. */
export function createArchiveSender(options: ArchiveOptions) {
  const { store, files, template, streams } = options;
  const archiveStreams = createArchiveStreams(files, streams, createFileStreams());

  const turns = createTurns();

  /** Reads all members: each page in a turn of its own, and one more turn for what is made of all. */
  async function* membersOf(task: Task, request: ArchiveRequest, reply: FastifyReply): AsyncGenerator<Task> {
    if (task.kind !== "collection") {
      yield task;
      return;
    }
    const closed = untilClosed(reply);
    for (let before: number | undefined; ;) {
      await turns.wait(request, closed);
      const { tasks, next } = await store.list({ parent: task.id, limit: 200, before });
      yield* tasks;
      if (next === undefined) break;
      before = next;
    }
    await turns.wait(request, closed);
  }

  return {
    /** Returns whether there is a file. */
    async hasFiles(request: ArchiveRequest, reply: FastifyReply, task: Task): Promise<boolean> {
      for await (const member of membersOf(task, request, reply)) if (filesOf(member).length > 0) return true;
      return false;
    },

    /**
     * Sends the archive, or its head, with conditions and ranges; returns whether there is a file: to await the reply would
     * return nothing.
     *
     * @throws ServiceError `precondition_failed`, `range_not_satisfiable`
     */
    async send(request: ArchiveRequest, reply: FastifyReply, task: Task): Promise<boolean> {
      const archiver = createArchiver(template);
      for await (const member of membersOf(task, request, reply)) archiver.add(member);
      const archive = archiver.finish();
      if (archive === undefined) return false;
      const etag = `"zip-${archive.id}"`;
      assertIfMatch(request.headers["if-match"], etag);
      const served = { name: nameOf(task), mime_type: "application/zip", size: archive.size, etag };
      const owner = task.owner ?? "";
      const open = (range: IntRange) =>
        archiveStreams.open(archive, range, { owner, isSent: () => isFlushed(reply.raw) });
      void sendRepresentation(request, reply, served, open);
      return true;
    },
  };
}

function nameOf({ id, file, info }: Task): string {
  const title = file === null ? (info?.title ?? null) : file.name.replace(/\.[^.]{1,10}$/, "");
  return fileName(title, ".zip", id);
}
