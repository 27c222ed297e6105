import { Type } from "@sinclair/typebox";
import type { FastifyPluginAsync, FastifyReply } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import { problems } from "../responses/problem.ts";

/** The state of the service as text for Prometheus. */
export interface MetricsSource {
  /** Media type of the text. */
  readonly contentType: string;
  /** Returns the text as of now. */
  read(): Promise<string>;
}

interface MetricsRoutesOptions {
  metrics: MetricsSource;
}

/** For the service's own port. The metrics cover all owners, so they need an admin's key, even while there are no keys. */
export const adminMetricsRoutes: FastifyPluginAsync<MetricsRoutesOptions> = async (app, { metrics }) => {
  app.get(
    "/metrics",
    {
      config: { access: "admin" },
      schema: {
        operationId: "readMetrics",
        summary: "Read the metrics of this process, for Prometheus",
        description:
          "Needs the key of an admin, even while there are no keys. `METRICS_PORT` serves the same without one.",
        tags: ["metrics"],
        response: {
          200: {
            description: "the text format of Prometheus, version 0.0.4",
            content: { "text/plain": { schema: Type.String() } },
          },
          ...problems("forbidden"),
        },
      },
    },
    async (request, reply) => {
      if (request.caller === null) throw noKeysError();
      return sendMetrics(reply, metrics);
    },
  );
};

/** For a port of their own, which everybody who reaches it may read. */
export const openMetricsRoutes: FastifyPluginAsync<MetricsRoutesOptions> = async (app, { metrics }) => {
  app.get("/metrics", { schema: { hide: true } }, async (_request, reply) => sendMetrics(reply, metrics));
};

async function sendMetrics(reply: FastifyReply, metrics: MetricsSource): Promise<string> {
  reply.type(metrics.contentType).header("cache-control", "no-store");
  return metrics.read();
}

function noKeysError(): ServiceError {
  const ways = "npm run -s key -- add NAME --admin, or set METRICS_PORT to serve them without one";
  return new ServiceError("forbidden", `metrics need the key of an admin: ${ways}`);
}
