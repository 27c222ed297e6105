import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTaskEvents } from "../../src/feed/task-events.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { type App, type AppOptions as AllOptions, buildApp as buildWith } from "../../src/http/app.ts";
import { openKeyRing } from "../../src/keys/key-ring.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";

export type AppOptions = Partial<AllOptions>;

/**
 * Builds the app. What is not passed is a store in memory, the keys of the store, a folder of its own, the stub, and a client
 * that may fetch from `allowNetworks`; all that is closed with the app.
 */
export async function buildApp(options: AppOptions = {}): Promise<App> {
  const { logger, allowNetworks = [] } = options;
  const own = new AsyncDisposableStack();
  const openOwnStore = () =>
    own.adopt(createMemoryStore({ events: createTaskEvents({ logger }) }), (store) => store.close());
  const store = options.store ?? openOwnStore();
  const openOwnKeys = async () => own.adopt(await openKeyRing({ keys: store.keys, logger }), (keys) => keys.close());
  const openOwnClient = () => own.adopt(createHttpClient({ allowNetworks }), (client) => client.close());
  const app = await buildWith({
    resolver: createStubResolver(),
    files: openDiskFiles({ folder: join(tmpdir(), `unreel-${randomUUID()}`) }),
    ...options,
    store,
    keys: options.keys ?? (await openOwnKeys()),
    client: options.client ?? openOwnClient(),
  });
  const closeApp: () => Promise<undefined> = app.close;
  return Object.assign(app, {
    async close() {
      await closeApp.call(app);
      await own.disposeAsync();
    },
  });
}
