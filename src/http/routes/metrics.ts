import type { FastifyPluginAsync } from "fastify";

/** The state of the service as text for Prometheus. */
export interface MetricsSource {
  /** Media type of the text. */
  readonly contentType: string;
  /** Returns the text as of now. */
  read(): Promise<string>;
}

export const metricsRoutes: FastifyPluginAsync<{ metrics: MetricsSource }> = async (
  app,
  { metrics },
) => {
  app.get("/metrics", { schema: { hide: true } }, async (_request, reply) => {
    reply.type(metrics.contentType).header("cache-control", "no-store");
    return metrics.read();
  });
};
