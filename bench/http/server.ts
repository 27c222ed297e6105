import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Fastify from "fastify";
import { pino } from "pino";
import { accessKeyOf } from "../../src/keys/secrets.ts";
import { buildApp } from "../../test/http/app.ts";
import { createMetrics, type Metrics } from "../../src/metrics/metrics.ts";
import { measureStore } from "../../src/stores/measured.ts";
import { openStore } from "../../src/stores/registry.ts";
import type { Task, TaskOptions } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { answerParent } from "../child.ts";
import { fillStore, keyOwner } from "./fill.ts";
import { enqueueApp } from "./postgres.ts";
import { createReadyResolver, type Route, type RouteName, routes } from "./routes.ts";

/** What one server process serves. */
export type ServerSpec =
  | { kind: "node"; sample: Sample }
  | { kind: "fastify"; route: RouteName; sample: Sample }
  /** The POST route, creating the task that it returns; `keeps`: stores it in a Map. */
  | { kind: "fastify-fresh"; keeps: boolean }
  /** The same, storing it in Postgres together with a pg-boss job. */
  | { kind: "fastify-pg-boss"; storeUrl: string }
  /** `tasks`: number of tasks created in the store first. */
  | UnreelSpec;

export interface UnreelSpec {
  kind: "unreel";
  storeUrl: string;
  tasks?: number;
  infoCacheTtlS?: number;
  /** Whether metrics are on; absent: they are off, and there is no log. */
  metrics?: boolean;
  /** Secret of its key, which requests need; absent: it has no keys. */
  key?: string;
}

/** A response of the service, to be sent by the bare servers. */
export interface Sample {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export interface ServerState {
  url: string;
  /** CPU time used so far by all threads of the process. */
  cpuMs: number;
  /** Time of a read of the metrics; NaN without. */
  scrapeMs: number;
}

/** No runner empties the queue here, and no task may be refused. Postgres has no infinite integers. */
const maxQueued = 1_000_000_000;

let metrics: Metrics | undefined;
const [spec = ""] = process.argv.slice(2);
const listening = listen(JSON.parse(spec));
answerParent(async (): Promise<ServerState> => {
  const { port } = (await listening).address() as AddressInfo;
  const { user, system } = process.cpuUsage();
  const startMs = performance.now();
  await metrics?.read();
  const scrapeMs = metrics === undefined ? Number.NaN : performance.now() - startMs;
  return { url: `http://127.0.0.1:${port}`, cpuMs: (user + system) / 1000, scrapeMs };
});

async function listen(wanted: ServerSpec): Promise<Server> {
  if (wanted.kind === "node") {
    const server = replayServer(wanted.sample);
    return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
  }
  const app = await createApp(wanted);
  await app.listen({ host: "127.0.0.1", port: 0 });
  return app.server;
}

async function createApp(wanted: Exclude<ServerSpec, { kind: "node" }>) {
  if (wanted.kind === "fastify") return bareApp(routes[wanted.route], wanted.sample);
  if (wanted.kind === "fastify-fresh") return freshApp(routes.create, wanted.keeps);
  if (wanted.kind === "fastify-pg-boss") return enqueueApp(routes.create, wanted.storeUrl);
  const { storeUrl, tasks = 0 } = wanted;
  const store = await openStore(storeUrl, { dataDir: "", maxQueued });
  await fillStore(store, tasks);
  if (wanted.key !== undefined) {
    const anna = { name: keyOwner, admin: false, limits: {} };
    await store.keys.add(accessKeyOf(wanted.key, anna, new Date()));
  }
  if (wanted.metrics === true) metrics = createMetrics({ store, files: { freeBytes: async () => 0 } });
  return buildApp({
    store: metrics === undefined ? store : measureStore(store, metrics.onStoreCall),
    observer: metrics?.app,
    // As the program has one, whose hooks cost something.
    ...(wanted.metrics !== undefined && { logger: pino({ level: "silent" }) }),
    resolver: createReadyResolver(),
    infoCacheTtlS: wanted.infoCacheTtlS ?? 300,
  });
}

/** Reads the request and writes the same bytes as the service, without any framework. */
function replayServer({ status, headers, body }: Sample): Server {
  return createServer((request, response) => {
    const answer = () => response.writeHead(status, headers).end(body);
    if (request.method === "GET") answer();
    else request.resume().on("end", answer);
  });
}

/** The route with its schemas alone: no hooks, no store, a prepared response object. */
function bareApp({ method, path, schema }: Route, { status, body }: Sample) {
  const answer: unknown = JSON.parse(body);
  const app = Fastify();
  app.route({
    method,
    url: path,
    schema,
    handler: (_request, reply) => reply.code(status).send(answer),
  });
  return app;
}

/** The same, but the response is built from the request. */
function freshApp({ method, path, schema }: Route, keeps: boolean) {
  const tasks = new Map<string, Task>();
  const app = Fastify();
  app.route<{ Body: { url: string; options?: TaskOptions } }>({
    method,
    url: path,
    schema,
    handler: (request, reply) => {
      const { url, options = {} } = request.body;
      const task = newTask(url, options, new Date());
      if (keeps) tasks.set(task.id, task);
      reply.code(201).send(task);
    },
  });
  return app;
}
