import { Type } from "@sinclair/typebox";
import type { FastifyPluginAsyncTypebox } from "@fastify/type-provider-typebox";
import type { TaskStore } from "../../stores/store.ts";
import { answerJson } from "../accept.ts";
import { problems } from "../problem.ts";

const Health = Type.Object({ status: Type.Literal("ok") });

export const healthRoutes: FastifyPluginAsyncTypebox<{ store: TaskStore }> = async (
  app,
  { store },
) => {
  app.addHook("onRequest", answerJson);

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
      await store.ping();
      return { status: "ok" as const };
    },
  );
};
