import { Type } from "@sinclair/typebox";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import { shutdownError } from "../../model/errors.ts";
import type { TaskStore } from "../../stores/store.ts";
import { requireAcceptJson } from "../responses/accept.ts";
import { problems } from "../responses/problem.ts";

const Health = Type.Object({ status: Type.Literal("ok") }, { title: "Health", description: "healthy" });

interface HealthRoutesOptions {
  store: TaskStore;
  /** Once it is aborted, the service is not ready. */
  drainSignal: AbortSignal | undefined;
}

export const healthRoutes: FastifyPluginAsyncTypebox<HealthRoutesOptions> = async (app, { store, drainSignal }) => {
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
    response: { 200: Health, ...problems("not_acceptable", "unavailable") },
  };
  app.get("/health/ready", { config, schema: ready }, async () => {
    if (drainSignal?.aborted) throw shutdownError();
    await store.ping();
    return { status: "ok" as const };
  });
};
