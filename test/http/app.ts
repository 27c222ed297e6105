import { randomBytes, randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTaskEvents } from "../../src/feed/task-events.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import {
  type App,
  type AppParts,
  type AppSettings,
  buildApp as buildWith,
  buildMetricsApp as buildMetricsWith,
  buildWorkerApp as buildWorkerWith,
  type MetricsAppParts,
  type WorkerAppParts,
} from "../../src/http/app.ts";
import { openKeyRing } from "../../src/keys/key-ring.ts";
import type { ServerSettings } from "../../src/http/base-app.ts";
import type { HttpClient } from "../../src/net/client.ts";
import { parseNetworks } from "../../src/net/addresses/addresses.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { defaultTemplate, parseTemplate } from "../../src/runner/library/template.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";

/** What an app is built with: parts and settings in one object. */
export interface AppOptions extends Omit<Partial<AppParts>, "client">, Partial<AppSettings>, Partial<ServerSettings> {
  client?: HttpClient;
  allowNetworks?: readonly string[];
}

/** Proxies on this machine are trusted. */
const server: ServerSettings = {
  allowedHosts: new Set(),
  allowedOrigins: { isEmpty: true, has: () => false },
  sendTimeoutMs: 60_000,
  trustedProxies: parseNetworks(["127.0.0.0/8", "::1/128"]),
  maxConnectionsPerAddress: 256,
  maxConnections: Number.POSITIVE_INFINITY,
};

const defaults: Omit<AppSettings, "server"> = {
  infoCacheTtlS: 300,
  infoTimeoutMs: 15_000,
  infoConcurrency: 64,
  template: parseTemplate(defaultTemplate),
  web: false,
};

/**
 * Builds the app. What is not passed is a store in memory, the keys of the store, a folder of its own, the stub, and a client
 * that may fetch from `allowNetworks`; all that is closed with the app.
 */
export async function buildApp(options: AppOptions = {}): Promise<App> {
  const { allowNetworks = [], ...appOptions } = options;
  const { logger } = options;
  const own = new AsyncDisposableStack();
  const openOwnStore = () =>
    own.adopt(createMemoryStore({ events: createTaskEvents({ logger }) }), (store) => store.close());
  const store = options.store ?? openOwnStore();
  const openOwnKeys = async () => own.adopt(await openKeyRing({ keys: store.keys, logger }), (keys) => keys.close());
  const ownClient = own.adopt(createHttpClient({ allowNetworks }), (client) => client.close());
  const parts: AppParts = {
    resolver: createStubResolver(),
    files: openDiskFiles({ folder: join(tmpdir(), `unreel-${randomUUID()}`) }),
    linkSecret: randomBytes(32),
    ...appOptions,
    store,
    keys: options.keys ?? (await openOwnKeys()),
    client: { ...ownClient, ...options.client },
  };
  const app = await buildWith(parts, { ...defaults, ...appOptions, server: { ...server, ...appOptions } });
  const closeApp: () => Promise<undefined> = app.close;
  return Object.assign(app, {
    async close() {
      await closeApp.call(app);
      await own.disposeAsync();
    },
  });
}

export function buildWorkerApp(options: WorkerAppParts & Partial<ServerSettings>): Promise<App> {
  return buildWorkerWith(options, { ...server, ...options });
}

export function buildMetricsApp(options: MetricsAppParts & Partial<ServerSettings>): Promise<App> {
  return buildMetricsWith(options, { ...server, ...options });
}
