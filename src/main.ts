import closeWithGrace from "close-with-grace";
import { pino } from "pino";
import { type Config, readConfig } from "./config.ts";
import { buildApp } from "./http/app.ts";
import { createHttpClient } from "./net/http-client.ts";
import { openResolver } from "./resolvers/registry.ts";
import { openStore } from "./stores/registry.ts";

await start().catch((error: unknown) => {
  process.stderr.write(`unreel: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});

/** Config → parts → app → listen → signals. */
async function start(): Promise<void> {
  const config = readConfig();
  const logger = pino({ level: config.LOG_LEVEL });
  const app = await buildApp({ ...(await openParts(config)), logger });
  try {
    await app.listen({ host: config.HOST, port: config.PORT });
  } catch (cause) {
    await app.close();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`HOST and PORT must be free to listen on: ${reason}`, { cause });
  }
  closeWithGrace({ logger, delay: 9_500 }, async ({ signal, err }) => {
    if (err) logger.fatal({ err }, "stopping after an error nobody handled");
    else logger.info({ signal }, "stopping; requests in flight may finish");
    await app.close();
  });
}

async function openParts(config: Config) {
  const client = createHttpClient({
    allowNetworks: config.ALLOW_NETWORKS,
    perHost: config.FETCHES_PER_HOST,
    totalTimeoutMs: config.INFO_TIMEOUT_MS,
  });
  const resolver = openResolver(config.RESOLVER, { client, pageMaxBytes: config.PAGE_MAX_BYTES });
  const store = await openStore(config.STORE_URL, { dataDir: config.DATA_DIR });
  return {
    store,
    resolver,
    infoTimeoutMs: config.INFO_TIMEOUT_MS,
    infoCacheTtlS: config.INFO_CACHE_TTL_S,
    infoConcurrency: config.INFO_CONCURRENCY,
  };
}
