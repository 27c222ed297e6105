import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import { type CuttingProxy, startCuttingProxy } from "../postgres/cutting-proxy.ts";
import { openDatabase, startOwnPostgres } from "../postgres/database.ts";
import type { PostgresServer } from "../postgres/server.ts";
import { query } from "../stores/postgres/query.ts";
import {
  expectFilms,
  expectUnavailable,
  type LoggedProcess,
  openFilmSite,
  openService,
  send,
  startLogged,
} from "./outage-harness.ts";
import { openSmallDisk } from "./small-disk.ts";
import { startSteadyClient } from "./steady-client.ts";
import { clientOf } from "./test-cluster.ts";
import { watchVisits } from "./visits.ts";

it("while the database cannot be reached, requests that need it get 503, and work resumes afterwards", async () => {
  await Promise.all([disconnect("cut"), disconnect("stall")]);
});

/** Disconnects all processes until they have noticed and the worker has given up its task. */
async function disconnect(disturbance: "cut" | "stall"): Promise<void> {
  const { proxy, url } = await openProxiedDatabase();
  const cluster = openService(url);
  const api = await startLogged(cluster, "api");
  const workers = await Promise.all([startLogged(cluster, "worker"), startLogged(cluster, "worker")]);
  const client = await clientOf(api);
  const site = await openFilmSite(300);
  const visits = watchVisits(site, "long.mp4");
  const { id } = await client.post(site.url("long.mp4"));
  await site.until(() => site.sent > 0);
  proxy[disturbance]();
  const stopped = new AbortController();
  void visits.closed().then(() => stopped.abort());
  while (!stopped.signal.aborted || !hasLogged(api, listenerLost) || !workers.every(hasLostBoth)) {
    const refused = await Promise.all([
      send(api, "/tasks/", site.url("short.mp4")),
      ...["/tasks/", `/tasks/${id}`].map((path) => send(api, path)),
      ...[api, ...workers].map((each) => send(each, "/health/ready")),
    ]);
    refused.forEach(expectUnavailable);
    for (const each of [api, ...workers]) {
      expect((await send(each, "/health/live")).status).toBe(200);
    }
    await sleep(500);
  }
  site.bytesPerSecond = Infinity;
  proxy.restore();
  const posted = await send(api, "/tasks/", site.url("short.mp4"));
  expect(posted.status, disturbance).toBe(201);
  await expectFilms(client, [id, posted.body["id"]]);
  expect(visits.mostAtOnce, disturbance).toBe(1);
  await expectLog(api, listenerOutage);
  for (const worker of workers) await expectLog(worker, [...listenerOutage, ...claimOutage]);
}

async function openProxiedDatabase(): Promise<{ proxy: CuttingProxy; url: string }> {
  const { pathname } = new URL(await openDatabase());
  const proxy = await startCuttingProxy(inject("postgresUrl"));
  onTestFinished(() => proxy.close());
  return { proxy, url: proxy.url(pathname.slice(1)) };
}

const listenerLost = "task event listener disconnected; reconnecting";
const claimsFailed = "claiming tasks failed; retrying every second";
const listenerOutage = [listenerLost, "task event listener reconnected"];
const claimOutage = [claimsFailed, "claiming tasks works again"];

function hasLogged({ log }: LoggedProcess, line: string): boolean {
  return log.some(({ msg }) => msg === line);
}

function hasLostBoth(worker: LoggedProcess): boolean {
  return hasLogged(worker, listenerLost) && hasLogged(worker, claimsFailed);
}

/** Expects each of these lines once, in words instead of a stack, and no others except those about requests and runs. */
async function expectLog({ log }: LoggedProcess, lines: string[]): Promise<void> {
  const others = () => log.map(({ msg }) => String(msg)).filter((line) => !/^(request|run)( |$)/.test(line));
  await expect.poll(() => others().toSorted()).toEqual(lines.toSorted());
  expect(log.filter((line) => "err" in line)).toEqual([]);
}

it("a database that restarts, then crashes, loses no task and causes only 503 responses", async () => {
  const server = await startOwnPostgres();
  const service = await startLogged(openService(server.url()), "all");
  const client = await clientOf(service);
  const site = await openFilmSite(2);
  const { id } = await client.post(site.url("long.mp4"));
  await site.until(() => site.sent > 0);
  const steady = startSteadyClient(service, site.url("short.mp4"));
  await steady.created(5);
  for (const disturb of [server.restart, () => crash(server)]) {
    await disturb();
    await steady.created(6);
  }
  await expectFilms(client, [id, ...(await steady.stop())]);
});

/** Kills one backend process; the server then ends the others and recovers. */
async function crash(server: PostgresServer): Promise<void> {
  const ours = "SELECT pid FROM pg_stat_activity WHERE application_name = 'unreel' LIMIT 1";
  const [backend] = await query<{ pid: number }>(server.url(), ours);
  process.kill(backend!.pid, "SIGKILL");
  const isBack = () =>
    query(server.url(), "SELECT 1").then(
      () => true,
      () => false,
    );
  await expect.poll(isBack).toBe(true);
}

it("a full database refuses new tasks, still serves reads, and accepts tasks when there is free space", async () => {
  const disk = await openSmallDisk();
  const service = await startLogged(openService(disk.url), "all");
  const client = await clientOf(service);
  const site = await openFilmSite(2);
  const visits = watchVisits(site, "long.mp4");
  const { id } = await client.post(site.url("long.mp4"));
  const post = () => send(service, "/tasks/", site.url("short.mp4"));
  const ids: unknown[] = [id];
  await site.until(() => site.sent > 0);
  await disk.fill();
  let posted = await post();
  for (; posted.status === 201; posted = await post()) ids.push(posted.body["id"]);
  expectUnavailable(posted);
  await visits.closed();
  for (const path of ["/tasks/", `/tasks/${id}`, "/health/live"]) {
    expect((await send(service, path)).status).toBe(200);
  }
  await disk.freeSpace();
  posted = await post();
  expect(posted.status).toBe(201);
  await expectFilms(client, [...ids, posted.body["id"]]);
});

it("a POST whose response was lost with the connection returns its task when it is repeated", async () => {
  const { proxy, url } = await openProxiedDatabase();
  const api = await startLogged(openService(url), "api");
  const post = () => send(api, "/tasks/", "https://a.test/", { "idempotency-key": "once" });
  const direct = new URL(inject("postgresUrl"));
  direct.pathname = new URL(url).pathname;
  const commit = await holdCommit(direct.href);
  const lost = post();
  await commit.waits();
  proxy.cut();
  expectUnavailable(await lost);
  const [task] = await commit.release();
  proxy.restore();
  const responses = await Promise.all([post(), post(), post()]);
  for (const { status, body } of responses) expect([status, body["id"]]).toEqual([201, task]);
  expect(await query(direct.href, "SELECT id FROM unreel.tasks")).toEqual([{ id: task }]);
});

/** Makes the commit of the next task wait for `release`, which returns the ids of all tasks after it. */
async function holdCommit(url: string) {
  const holder = new Client({ connectionString: url });
  onTestFinished(() => holder.end());
  await holder.connect();
  await holder.query(
    `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       PERFORM pg_advisory_xact_lock(1);
       RETURN NULL;
     END $$;
     CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON unreel.tasks
       DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();
     SELECT pg_advisory_lock(1)`,
  );
  const rows = async (text: string) => (await holder.query<{ id: string }>(text)).rows;
  const waiting = `SELECT pid AS id FROM pg_stat_activity
    WHERE datname = current_database() AND query = 'COMMIT' AND wait_event_type = 'Lock'`;
  const stored = "SELECT id FROM unreel.tasks";
  return {
    async waits() {
      await expect.poll(() => rows(waiting)).toHaveLength(1);
    },
    async release() {
      await rows("SELECT pg_advisory_unlock(1)");
      await expect.poll(() => rows(stored)).toHaveLength(1);
      return (await rows(stored)).map(({ id }) => id);
    },
  };
}
