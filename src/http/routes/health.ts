import { Type } from "@sinclair/typebox";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { shutdownError } from "../../model/errors.ts";
import type { TaskStore } from "../../stores/store.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { problems } from "../responses/problem.ts";

const Health = Type.Object({ status: Type.Literal("ok") }, { title: "Health", description: "healthy" });

const Ready = Type.Object(
  {
    ...Health.properties,
    unenforced: Type.Optional(
      Type.Array(Type.String(), {
        description: "what the kernel of the service's machine does not forbid yt-dlp's processes; absent: nothing",
      }),
    ),
  },
  { title: "Readiness", description: "ready" },
);

interface HealthRoutesOptions {
  store: TaskStore;
  /** Once it is aborted, the service is not ready. */
  drainSignal: AbortSignal | undefined;
  /** What `/health/ready` says of yt-dlp's processes. */
  unenforced: readonly string[] | undefined;
}

export const healthRoutes: FastifyPluginAsyncTypebox<HealthRoutesOptions> = async (app, options) => {
  const { store, drainSignal, unenforced = [] } = options;
  app.addHook("onRequest", requireAcceptJson);
  const config = { access: "open" } as const;

  const live = {
    operationId: "isLive",
    summary: "Liveness probe: the process is running",
    tags: ["health"],
    response: { 200: Health, ...problems("not_acceptable") },
  };
  app.get("/health/live", { config, schema: live }, async () => ({ status: "ok" as const }));

  const ready = {
    operationId: "isReady",
    summary: "Readiness probe: the service can store tasks and is not shutting down",
    tags: ["health"],
    response: { 200: Ready, ...problems("not_acceptable", "unavailable") },
  };
  app.get("/health/ready", { config, schema: ready }, async () => {
    if (drainSignal?.aborted) throw shutdownError();
    await store.ping();
    return { status: "ok" as const, ...(unenforced.length > 0 && { unenforced: [...unenforced] }) };
  });
};
