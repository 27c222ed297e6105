import { Type } from "@sinclair/typebox";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import type { TaskStore } from "../../stores/store.ts";
import { requireAcceptJson } from "../accept.ts";
import { stoppingError } from "../drain.ts";
import { problems } from "../problem.ts";

const Health = Type.Object({ status: Type.Literal("ok") });

interface HealthRoutesOptions {
  store: TaskStore;
  /** Not ready once it is aborted. */
  drainSignal: AbortSignal | undefined;
}

export const healthRoutes: FastifyPluginAsyncTypebox<HealthRoutesOptions> = async (
  app,
  { store, drainSignal },
) => {
  app.addHook("onRequest", requireAcceptJson);

  app.get(
    "/health/live",
    {
      schema: {
        operationId: "isLive",
        summary: "Is the process up?",
        tags: ["health"],
        response: { 200: Health, ...problems("not_acceptable") },
      },
    },
    async () => ({ status: "ok" as const }),
  );

  app.get(
    "/health/ready",
    {
      schema: {
        operationId: "isReady",
        summary: "Can it take tasks?",
        tags: ["health"],
        response: { 200: Health, ...problems("not_acceptable", "unavailable") },
      },
    },
    async () => {
      if (drainSignal?.aborted) throw stoppingError();
      await store.ping();
      return { status: "ok" as const };
    },
  );
};
