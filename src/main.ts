import { setTimeout as wait } from "node:timers/promises";
import type { FastifyListenOptions } from "fastify";
import { pino } from "pino";
import { findMisspeltSettings, readConfig } from "./config/config.ts";
import { openServices } from "./services.ts";
import { openLogOutput } from "./system/log-output.ts";
import { stopOnSignal } from "./system/stop-on-signal.ts";

/** How long the service may take to stop after `DRAIN_MS`; Docker allows 10 s. */
const stopMs = 9_500;

/**
 * Connections that the system may hold until the process accepts them, one in each turn of its event loop. The system drops those beyond it, whose
 * clients try again after one second, then three. Node's default of 511 is less than one client opens at once. The system's own limit, on Linux
 * 4,096 (`net.core.somaxconn`), still holds.
 */
const waitingConnections = 4_096;

type App = Awaited<ReturnType<typeof openServices>>["app"];

await start().catch((error: unknown) => {
  process.stderr.write(`unreel: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
  // Whatever is still open.
  setTimeout(() => process.exit(), 3_000).unref();
});

/** Settings → services → listen → run tasks → wait for a signal → close the services. */
async function start(): Promise<void> {
  // URLs of pages and media carry tokens: what the service creates is for its user alone.
  process.umask(0o077);
  const config = readConfig();
  const output = openLogOutput(config.log.format, (lines) =>
    logger.warn({ lines }, "lines of the log were dropped: nobody read it"),
  );
  const logger = pino({ level: config.log.level }, output);
  for (const { name, likely } of findMisspeltSettings()) {
    logger.warn(`${name} is not a setting, and has no effect: did you mean ${likely}?`);
  }
  const drain = new AbortController();
  await using opened = new AsyncDisposableStack();
  const { app, metricsApp, background } = await openServices(config, logger, drain.signal, opened);
  if (metricsApp) {
    await listen(metricsApp, "METRICS_HOST and METRICS_PORT", {
      ...config.listenMetrics,
      listenTextResolver: (address) => `serving metrics at ${address}/metrics`,
    });
  }
  await listen(app, "HOST and PORT", { ...config.listen, backlog: waitingConnections });
  for (const work of background) work.start();
  const services = opened.move();
  stopOnSignal({ logger, logClosed: output.closed, delayMs: config.drainMs + stopMs }, async (err) => {
    drain.abort();
    // Running tasks are requeued while requests finish; closing `services` waits for it and reports errors.
    for (const work of background) work.stop().catch(() => {});
    if (!err) await wait(config.drainMs);
    await services.disposeAsync();
  });
}

/** @throws Error that names the settings if the app cannot listen there. */
async function listen(app: App, settings: string, options: FastifyListenOptions): Promise<void> {
  try {
    await app.listen(options);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`cannot listen on ${settings}: ${reason}`, { cause });
  }
}
