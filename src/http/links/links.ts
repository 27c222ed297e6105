import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { Type } from "@sinclair/typebox";
import type { KeyRing } from "../../keys/key-ring.ts";
import { ServiceError } from "../../model/errors.ts";
import { time } from "../../model/schema.ts";
import { isActive, type Task } from "../../model/task.ts";
import { damagedAs } from "../../stores/rules.ts";
import type { TaskStore } from "../../stores/store.ts";
import type { AccessCheck } from "../access/access.ts";
import { requireTask } from "../access/ownership.ts";
import type { ArchiveSender } from "../archives/archive-routes.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { bodyErrors, problems } from "../responses/problem.ts";
import { anyFile, archive, getFileSchema, type SendFile } from "../responses/send-file.ts";
import { findFile } from "../routes/file.ts";
import { TaskParams } from "../routes/task.ts";
import { readJsonBodies } from "../server/json.ts";
import type { SendStream } from "../streams/task-stream.ts";
import type { LinkTarget, LinkTokens } from "./link-tokens.ts";

const LinkBody = Type.Object(
  {
    file: Type.String({
      maxLength: 1_024,
      description: "`name` of one of the task's `files`, `files.zip` or `stream`",
    }),
    expires_in: Type.Integer({ minimum: 60, maximum: 2_592_000, description: "how long the link works, seconds" }),
  },
  { title: "NewLink" },
);

const Link = Type.Object(
  {
    url: Type.String({ description: "path to download the file from, without a key" }),
    expires_at: time("when it ends"),
  },
  { title: "Link" },
);

const createSchema = {
  operationId: "createLink",
  summary: "Create a link to a file, to all of them or to the stream, which works without a key",
  description:
    "Whoever has the link can download the file until the link ends. It ends early when the task, its files or the key that made it are removed. " +
    "A link to `files.zip` is to all files of the task, or to those that the members of a collection have when it is used; it ends when there are none. " +
    "A link to `stream` works from the start on, as `/tasks/{id}/stream`, and also ends when the task fails.",
  tags: ["tasks"],
  params: TaskParams,
  body: LinkBody,
  response: {
    201: { ...Link, description: "the link" },
    ...problems(...bodyErrors, "not_found", "internal", "unavailable"),
  },
};

const getSchema = {
  tags: ["tasks"],
  params: Type.Object({ token: Type.String({ description: "from the `url` of a link" }) }),
  operationId: "getLink",
  summary: "Download the file of a link",
  ...getFileSchema({ ...anyFile, ...archive }, ["not_found", "too_many_requests", "internal", "unavailable"]),
};

interface LinkRoutesOptions {
  store: TaskStore;
  keys: KeyRing;
  access: Pick<AccessCheck, "breakOffUnless">;
  tokens: LinkTokens;
  archives: ArchiveSender;
  sendFile: SendFile;
  sendStream: SendStream;
}

export const newLinkRoutes: FastifyPluginAsyncTypebox<
  Pick<LinkRoutesOptions, "store" | "tokens" | "archives">
> = async (app, { store, tokens, archives }) => {
  app.addHook("onRequest", requireAcceptJson);
  readJsonBodies(app);

  app.post("/tasks/:id/links", { schema: createSchema }, async (request, reply) => {
    const { file: name, expires_in: seconds } = request.body;
    const task = await requireTask(store, request);
    const isThere =
      (name === streamName && hasStream(task)) ||
      (name === archiveName && (await archives.hasFiles(request, reply, task))) ||
      findFile(task, name) !== undefined;
    if (!isThere) {
      const shown = JSON.stringify(name.slice(0, 200));
      throw new ServiceError("not_found", `task ${task.id} has no file named ${shown}; ${describeFiles(task)}`);
    }
    const endsMs = Date.now() + 1_000 * seconds;
    const token = tokens.seal({ taskId: task.id, name, endsMs, keyHash: request.caller?.hash ?? null });
    return reply.code(201).send({ url: `/links/${token}`, expires_at: new Date(endsMs).toISOString() });
  });
};

const maxNamed = 3;

function describeFiles(task: Task): string {
  const { files = [], state, removed_at } = task;
  if (removed_at !== null) return `its files were removed at ${removed_at}`;
  if (files.length === 0) return `its state is ${state}${hasStream(task) ? `, and it has "${streamName}"` : ""}`;
  const more = files.length > maxNamed ? ` and ${files.length - maxNamed} more` : "";
  return `it has ${files
    .slice(0, maxNamed)
    .map(({ name }) => JSON.stringify(name))
    .join(", ")}${more}`;
}

export const linkRoutes: FastifyPluginAsyncTypebox<LinkRoutesOptions> = async (app, options) => {
  const { store, keys, access, archives, sendFile, sendStream } = options;
  const config = { access: "open" } as const;

  app.get(`${linksPath}:token`, { config, schema: getSchema }, async (request, reply) => {
    const target = openLink(request.params.token, options);
    const { taskId: id, name, keyHash } = target;
    access.breakOffUnless(() => keys.admits(keyHash), reply.raw, deadLinkError);
    reply.headers(linkHeaders);
    if (name === streamName) return sendStream(request, reply, { id, read: () => findStreamed(options, id) });
    const task = await store.get(id).catch(damagedAs(undefined));
    if (name === archiveName) {
      if (task === undefined || !(await archives.send(request, reply, task))) throw deadLinkError();
      return reply;
    }
    const found = task && findFile(task, name);
    if (found === undefined) throw deadLinkError();
    return sendFile(request, reply, found);
  });
  // What is nearly a link is none, with or without a key.
  app.get(`${linksPath}*`, { config, schema: { hide: true } }, async () => {
    throw deadLinkError();
  });
};

export const linksPath = "/links/";

/** Instead of the name of a file: those have an extension, that of a medium, subtitles or a picture. */
const streamName = "stream";
const archiveName = "files.zip";

/** The URL is as good as a key. */
const linkHeaders = { "referrer-policy": "no-referrer", "x-robots-tag": "noindex" };

/** @throws ServiceError `not_found`, the same whatever is wrong with the link */
function openLink(token: string, { keys, tokens }: LinkRoutesOptions): LinkTarget {
  const target = tokens.open(token);
  if (target === undefined || target.endsMs <= Date.now() || !keys.admits(target.keyHash)) throw deadLinkError();
  return target;
}

/** Returns the task as long as it has a stream. @throws ServiceError `not_found` as `openLink`; of the store */
async function findStreamed({ store }: LinkRoutesOptions, id: string): Promise<Task> {
  const task = await store.get(id).catch(damagedAs(undefined));
  if (task === undefined || !hasStream(task)) throw deadLinkError();
  return task;
}

function hasStream({ state, file, kind }: Task): boolean {
  if (kind === "collection") return false;
  return isActive(state) || (state === "succeeded" && file !== null);
}

/** What a request for any link that is none fails with. */
export function deadLinkError(): ServiceError {
  return new ServiceError("not_found", "there is no such link, or it has ended");
}
