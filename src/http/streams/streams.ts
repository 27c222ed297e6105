import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { requireTask } from "../access/ownership.ts";
import { getFileSchema, media } from "../responses/send-file.ts";
import { TaskParams } from "../routes/task.ts";
import { rangeRule } from "./blind-range.ts";
import type { TaskStore } from "../../stores/store.ts";
import type { SendStream } from "./task-stream.ts";

/** How a route may fail that sends the medium of a task: also as the task itself does. */
export const streamErrors = [
  "invalid_request",
  "not_found",
  "conflict",
  "file_removed",
  "address_blocked",
  "no_media",
  "format_unavailable",
  "drm_protected",
  "login_required",
  "geo_restricted",
  "playlist",
  "live_stream",
  "too_large",
  "too_many_requests",
  "quota_exceeded",
  "internal",
  "upstream_unreachable",
  "upstream_status",
  "upstream_invalid",
  "unavailable",
  "upstream_timeout",
  "disk_full",
] as const;

const schema = {
  tags: ["tasks"],
  params: TaskParams,
  ...getFileSchema(media, streamErrors),
  operationId: "getStream",
  summary: "Play or save the medium of a task while it is being downloaded",
  description:
    "The media from their first segment on, as fast as the client reads them: fragmented MP4, or a progressive file as it comes. " +
    "The response begins once there is something to send. It ends only if the task succeeds; if it fails, the connection breaks. " +
    `Of a task that has succeeded, it is the file. ${rangeRule}`,
};

interface StreamRoutesOptions {
  store: TaskStore;
  sendStream: SendStream;
}

/** The route of media that are being downloaded. */
export const streamRoutes: FastifyPluginAsyncTypebox<StreamRoutesOptions> = async (app, { store, sendStream }) => {
  app.get("/tasks/:id/stream", { schema }, (request, reply) =>
    sendStream(request, reply, { id: request.params.id, read: () => requireTask(store, request) }),
  );
};
