import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Fastify from "fastify";
import { buildApp } from "../../src/http/app.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { openSqliteStore } from "../../src/stores/sqlite.ts";
import { answerParent } from "../child.ts";
import { fillStore } from "./fill.ts";
import { createReadyResolver, type Route, type RouteName, routes } from "./routes.ts";

/** What one server process serves. */
export type ServerSpec =
  | { kind: "node"; sample: Sample }
  | { kind: "fastify"; route: RouteName; sample: Sample }
  /** `file`: the SQLite store in that file; else `tasks` tasks in the memory store. */
  | { kind: "unreel"; file?: string; tasks?: number; infoCacheTtlS?: number };

/** An answer that the service gave, to be given again by the bare servers. */
export interface Sample {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export interface ServerState {
  url: string;
  /** CPU time used so far by all threads of the process. */
  cpuMs: number;
}

const [spec = ""] = process.argv.slice(2);
const listening = listen(JSON.parse(spec));
answerParent(async (): Promise<ServerState> => {
  const { port } = (await listening).address() as AddressInfo;
  const { user, system } = process.cpuUsage();
  return { url: `http://127.0.0.1:${port}`, cpuMs: (user + system) / 1000 };
});

async function listen(wanted: ServerSpec): Promise<Server> {
  if (wanted.kind === "node") {
    const server = replayServer(wanted.sample);
    return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
  }
  const app =
    wanted.kind === "fastify"
      ? bareApp(routes[wanted.route], wanted.sample)
      : await buildApp({
          store: await openStore(wanted),
          resolver: createReadyResolver(),
          infoCacheTtlS: wanted.infoCacheTtlS ?? 300,
        });
  await app.listen({ host: "127.0.0.1", port: 0 });
  return app.server;
}

async function openStore({ file, tasks = 0 }: { file?: string; tasks?: number }) {
  if (file !== undefined) return openSqliteStore({ path: file });
  const store = createMemoryStore();
  await fillStore(store, tasks);
  return store;
}

/** Reads the request and writes the same bytes as the service, with nothing in between. */
function replayServer({ status, headers, body }: Sample): Server {
  return createServer((request, response) => {
    const answer = () => response.writeHead(status, headers).end(body);
    if (request.method === "GET") answer();
    else request.resume().on("end", answer);
  });
}

/** The route with its schemas alone: no hook, no store, and the answer is a ready object. */
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
