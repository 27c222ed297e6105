import type { FastifyPluginAsync } from "fastify";
import type { FileStore } from "../files/files.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import type { InfoCache } from "../resolvers/info-cache.ts";
import type { Library } from "../runner/library/library.ts";
import type { Template } from "../runner/library/template.ts";
import type { AccessCheck } from "./access/access.ts";
import type { ChangeInTurn } from "./access/request-limits.ts";
import { archiveRoutes, createArchiveSender } from "./archives/archive-routes.ts";
import type { LinkTokens } from "./links/link-tokens.ts";
import { linkRoutes, newLinkRoutes } from "./links/links.ts";
import { createFileStreams } from "./responses/file-streams.ts";
import { createFileSender } from "./responses/send-file.ts";
import { fileRoutes } from "./routes/file.ts";
import type { NewTaskDeps } from "./routes/new-task.ts";
import { downloadRoutes } from "./streams/download.ts";
import { streamRoutes } from "./streams/streams.ts";
import { createStreamSender } from "./streams/task-stream.ts";

interface MediaRoutesDeps extends NewTaskDeps {
  files: FileStore;
  library?: Pick<Library, "remove"> | undefined;
  keys: KeyRing;
  access: AccessCheck;
  inTurn: ChangeInTurn;
  infoCache: InfoCache;
  /** What names the files of archives. */
  template: Template;
  /** As `maxFiles` of archives. */
  maxArchiveFiles: number;
  /** Of links. */
  tokens: LinkTokens;
  observer?: { onFileBytes?: (bytes: number) => void } | undefined;
}

/** The routes that send what tasks have made: files, archives, streams, and links to all three. */
export const mediaRoutes: FastifyPluginAsync<MediaRoutesDeps> = async (app, deps) => {
  const { store, files, template, maxArchiveFiles: maxFiles, observer } = deps;
  const streams = createFileStreams(observer?.onFileBytes);
  const sendFile = createFileSender(files, streams);
  const archives = createArchiveSender({ store, files, template, streams, maxFiles });
  const sendStream = createStreamSender({ store, files, streams, sendFile });
  const senders = { sendFile, archives, sendStream };
  await app.register(fileRoutes, { ...deps, ...senders });
  await app.register(archiveRoutes, { ...deps, ...senders });
  await app.register(streamRoutes, { ...deps, ...senders });
  await app.register(downloadRoutes, { ...deps, ...senders });
  await app.register(newLinkRoutes, { ...deps, ...senders });
  await app.register(linkRoutes, { ...deps, ...senders });
};
