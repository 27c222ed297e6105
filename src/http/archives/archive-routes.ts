import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import type { FastifyReply } from "fastify";
import { type Release, Shares } from "../../async/shares.ts";
import { ServiceError } from "../../model/errors.ts";
import type { TaskStore } from "../../stores/store.ts";
import { requireTask } from "../access/ownership.ts";
import { archive as zip, getFileSchema, sendRepresentation, type SentRequest } from "../responses/send-file.ts";
import { assertHasFiles, filesOf } from "../routes/file.ts";
import { taskErrors, TaskParams } from "../routes/task.ts";
import { fileName } from "../../files/file-name.ts";
import type { FileStore } from "../../files/files.ts";
import type { Task } from "../../model/task.ts";
import type { Template } from "../../runner/library/template.ts";
import type { IntRange } from "../../net/byte-range.ts";
import { createFileStreams, type FileStreams, recipientOf } from "../responses/file-streams.ts";
import { createTurns, onClosed, untilClosed } from "../responses/turns.ts";
import { createArchiver, createArchiveStreams } from "./archive.ts";

const schema = {
  tags: ["tasks"],
  params: TaskParams,
  operationId: "getArchive",
  summary: "Download all files of a task, or of all tasks of a collection, as one ZIP archive",
  ...getFileSchema(zip, [...taskErrors, "file_removed", "too_many_requests"]),
};

interface ArchiveRoutesOptions {
  store: TaskStore;
  archives: ArchiveSender;
}

/** The route of all files of a task in one. */
export const archiveRoutes: FastifyPluginAsyncTypebox<ArchiveRoutesOptions> = async (app, { store, archives }) => {
  app.get("/tasks/:id/files.zip", { schema }, async (request, reply) => {
    const task = await requireTask(store, request);
    if (task.kind !== "collection") assertHasFiles(task);
    if (await archives.send(request, reply, task)) return reply;
    throw new ServiceError("not_found", `no task of collection ${task.id} has a file`);
  });
};

interface ArchiveOptions {
  store: TaskStore;
  files: FileStore;
  /** What names the files. */
  template: Template;
  streams: FileStreams;
  /** Files that the archives have which are made or sent at a time, rounded up for each to hundreds; owners share them. */
  maxFiles: number;
}

export type ArchiveSender = ReturnType<typeof createArchiveSender>;

/** Files that are named in one turn of the event loop: each may take several tries. */
const filesAtOnce = 50;

/** Creates a sender of all files of a task, or of all members of a collection, as one archive. */
export function createArchiveSender(options: ArchiveOptions) {
  const { store, files, template, streams, maxFiles } = options;
  const archiveStreams = createArchiveStreams(files, streams, createFileStreams());
  const takePlaces = sharePlaces(maxFiles);
  const turns = createTurns();

  /** Reads all members: each page, and what is made of a few of them, in a turn of its own. */
  async function* membersOf(task: Task, request: SentRequest, reply: FastifyReply): AsyncGenerator<Task> {
    if (task.kind !== "collection") {
      yield task;
      return;
    }
    const closed = untilClosed(reply);
    for (let before: number | undefined; ;) {
      await turns.wait(request, closed);
      const { tasks, next } = await store.list({ parent: task.id, limit: 200, before });
      let count = 0;
      for (const member of tasks) {
        yield member;
        count += filesOf(member).length;
        if (count < filesAtOnce) continue;
        count = 0;
        await turns.wait(request, closed);
      }
      if (next === undefined) break;
      before = next;
    }
  }

  return {
    /** Returns whether there is a file. */
    async hasFiles(request: SentRequest, reply: FastifyReply, task: Task): Promise<boolean> {
      for await (const member of membersOf(task, request, reply)) if (filesOf(member).length > 0) return true;
      return false;
    },

    /**
     * Sends the archive, or its head, with conditions and ranges; returns whether there is a file: to await the reply would
     * return nothing.
     *
     * @throws ServiceError `precondition_failed`, `range_not_satisfiable`, `too_many_requests`
     */
    async send(request: SentRequest, reply: FastifyReply, task: Task): Promise<boolean> {
      const archiver = createArchiver(template);
      const take = takePlaces(request, reply, task);
      for await (const member of membersOf(task, request, reply)) {
        archiver.add(member);
        take(archiver.count);
      }
      const archive = archiver.finish();
      if (archive === undefined) return false;
      const etag = `"zip-${archive.id}"`;
      const served = { name: nameOf(task), mime_type: "application/zip", size: archive.size, etag };
      const owner = task.owner ?? "";
      const open = (range: IntRange) => archiveStreams.open(archive, range, owner, recipientOf(request, reply));
      void sendRepresentation(request, reply, served, open);
      return true;
    },
  };
}

/** Files of an archive for which it takes one place: what is known of a file takes a hundred bytes of memory until the archive is sent. */
const filesPerPlace = 100;

/**
 * Lets archives have so many files together; owners share the places for them. Returns what prepares a reply: it returns a function that takes
 * as many places, until the reply is sent, as so many files need.
 */
function sharePlaces(maxFiles: number) {
  const places = new Shares(Math.ceil(maxFiles / filesPerPlace));
  return ({ caller }: SentRequest, { raw }: FastifyReply, task: Task): ((files: number) => void) => {
    const taken: Release[] = [];
    onClosed(raw, () => taken.forEach((release) => release()));
    return (files) => {
      while (taken.length * filesPerPlace < files && !raw.destroyed) {
        const release = places.take(caller?.name ?? task.owner ?? "");
        if (release === undefined) throw manyFilesError(maxFiles);
        taken.push(release);
      }
    };
  };
}

function manyFilesError(maxFiles: number): ServiceError {
  const rule = `the archives that are being sent have ${maxFiles} files or nearly so many, of which each key has its share`;
  return new ServiceError("too_many_requests", rule, { retryAfterS: 10 });
}

function nameOf({ id, file, info }: Task): string {
  const title = file === null ? (info?.title ?? null) : file.name.replace(/\.[^.]{1,10}$/, "");
  return fileName(title, ".zip", id);
}
