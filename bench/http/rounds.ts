import { type Child, forkChild } from "../child.ts";
import { median } from "../table.ts";
import type { Load, LoadResult } from "./load.ts";
import { type RouteName, type Route, routes } from "./routes.ts";
import type { ServerSpec, ServerState } from "./server.ts";

/** One row of a table: a server and its numbers of connections. */
export interface Entry {
  name: string;
  spec: ServerSpec;
  connections: readonly number[];
}

/** Results of one server at one number of connections, one value per round. */
export interface Series {
  name: string;
  connections: number;
  rounds: Round[];
}

interface Round extends LoadResult {
  /** CPU time of the server per request, microseconds. */
  cpuUs: number;
  /** CPU time of the server as a share of one core; over 1 if several threads work. */
  serverBusy: number;
  /** As in `ServerState`, after the round. */
  scrapeMs: number;
}

export interface Effort {
  /** Length of a round. */
  seconds: number;
  rounds: number;
}

/**
 * Starts every server in its own process and warms it up. Loads them in turn in every round, so that
 * disturbances of the machine affect all servers.
 *
 * @throws Error if any request fails.
 */
export async function runRounds(
  routeName: RouteName,
  entries: readonly Entry[],
  { seconds, rounds }: Effort,
): Promise<Series[]> {
  const load = forkChild<Load, LoadResult>(new URL("load.ts", import.meta.url));
  const servers: LoadedServer[] = [];
  const tests: { server: LoadedServer; series: Series }[] = [];
  for (const { name, spec, connections } of entries) {
    const server = { ...startServer(spec), key: "key" in spec ? spec.key : undefined };
    servers.push(server);
    for (const count of connections) {
      tests.push({ server, series: { name, connections: count, rounds: [] } });
    }
  }
  const route: Route = routes[routeName];
  try {
    for (const server of servers) await loadOnce(load, server, route, 64, Math.min(1, seconds));
    for (let round = 0; round < rounds; round++) {
      for (const { series, server } of round % 2 === 0 ? tests : tests.toReversed()) {
        series.rounds.push(await loadOnce(load, server, route, series.connections, seconds));
      }
    }
  } finally {
    await Promise.all([load, ...servers].map((child) => child.stop()));
  }
  return tests.map(({ series }) => series);
}

/** @throws Error if nothing of this name was measured at this number of connections. */
export function find(series: readonly Series[], name: string, connections = 64): Series {
  const found = series.find((one) => one.name === name && one.connections === connections);
  if (found === undefined) throw new Error(`nothing was measured for ${name}`);
  return found;
}

/** Returns the median over the rounds of what `pick` selects. */
export function middle({ rounds }: Series, pick: (round: Round) => number): number {
  return median(rounds.map(pick));
}

/** Returns the median over the rounds of `series` : `base`, at the same number of connections. */
export function ratio(series: Series, base: Series, pick: (round: Round) => number): number {
  const bases = base.rounds.map(pick);
  return median(series.rounds.map((round, i) => pick(round) / (bases[i] ?? Number.NaN)));
}

type ServerProcess = Child<null, ServerState>;

interface LoadedServer extends ServerProcess {
  /** Secret of the key that requests need. */
  key: string | undefined;
}

function startServer(spec: ServerSpec): ServerProcess {
  const args = [JSON.stringify(spec)];
  // A million tasks in memory need more than a small machine's default heap. `npm start` sets the other flag too.
  const execArgv = ["--max-old-space-size=4096", "--no-allocation-site-pretenuring"];
  return forkChild(new URL("server.ts", import.meta.url), { args, execArgv });
}

async function loadOnce(
  load: Child<Load, LoadResult>,
  server: LoadedServer,
  { method, path, query = "", body }: Route,
  connections: number,
  seconds: number,
): Promise<Round> {
  const before = await server.ask(null);
  const url = `${before.url}${path}${query}`;
  const result = await load.ask({
    url,
    method,
    connections,
    seconds,
    key: server.key,
    ...(body && { body }),
  });
  const { cpuMs, scrapeMs } = await server.ask(null);
  if (result.failures > 0 || result.requests === 0) {
    throw new Error(`${method} ${url}: ${result.failures} of ${result.requests} requests failed`);
  }
  const usedMs = cpuMs - before.cpuMs;
  const wallMs = (1000 * result.requests) / result.perSecond;
  const cpuUs = (1000 * usedMs) / result.requests;
  return { ...result, cpuUs, serverBusy: usedMs / wallMs, scrapeMs };
}
