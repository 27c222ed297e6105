import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { ServiceError } from "../../../src/model/errors.ts";
import { openDiskFiles } from "../../../src/files/disk.ts";
import type { FileStore } from "../../../src/files/files.ts";
import type { App } from "../../../src/http/app.ts";
import { type AppOptions, buildApp } from "../../http/app.ts";
import { PageInfo } from "../../../src/model/page-info.ts";
import type { Resolver, ResolveContext } from "../../../src/resolvers/resolver.ts";
import { createMemoryStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { createTaskEvents } from "../../../src/feed/task-events.ts";
import { listenApp } from "../../http/open-app.ts";

/** The service on a port of 127.0.0.1, which runs no tasks: the test changes them in its store. */
export interface PageApp {
  app: App;
  /** Address of the page. */
  url: string;
  store: TaskStore;
  files: FileStore;
  /** What `/info` says of a page. */
  pages: Pages;
}

/** What a page says, by its address, or how it fails. */
type Pages = Map<string, PageInfo | ((context: ResolveContext) => Promise<PageInfo>)>;

let shared: PageApp | undefined;

/** Makes the tests of the `describe` that this is called in share an app, one after the other. */
export function useSharedApp(): void {
  let close: () => Promise<void>;
  beforeAll(async () => {
    [shared, close] = await startApp({ infoCacheTtlS: 0 });
  });
  afterAll(async () => {
    shared = undefined;
    await close();
  });
}

/** Returns the shared app, without a task or a page. With options, opens an app for this test alone. */
export async function openApp(options?: AppOptions): Promise<PageApp> {
  if (options === undefined && shared !== undefined) {
    await clear(shared);
    return shared;
  }
  const [app, close] = await startApp(options ?? {});
  onTestFinished(close);
  return app;
}

async function clear({ store, pages }: PageApp): Promise<void> {
  pages.clear();
  for (;;) {
    const { tasks } = await store.list({ limit: 200 });
    if (tasks.length === 0) return;
    for (const { id } of tasks) await store.delete(id);
  }
}

async function startApp(options: AppOptions): Promise<[PageApp, close: () => Promise<void>]> {
  const folder = await mkdtemp(join(tmpdir(), "unreel-page-"));
  const files = openDiskFiles({ folder });
  const store = options.store ?? createMemoryStore({ events: createTaskEvents() });
  const pages: Pages = new Map();
  const app = await buildApp({
    web: true,
    store,
    files,
    resolver: createResolver(pages),
    allowNetworks: ["127.0.0.0/8"],
    finishMs: 0,
    ...options,
  });
  const port = await listenApp(app);
  const close = async () => {
    await app.close();
    await rm(folder, { recursive: true });
  };
  return [{ app, url: `http://127.0.0.1:${port}/`, store, files, pages }, close];
}

function createResolver(pages: Pages): Resolver<typeof PageInfo> {
  return {
    name: "page",
    output: PageInfo,
    async resolve({ href }, context) {
      const page = pages.get(href);
      if (page === undefined) {
        throw new ServiceError("upstream_status", `GET ${href} failed with status 404`);
      }
      return typeof page === "function" ? page(context) : page;
    },
    async close() {},
  };
}
