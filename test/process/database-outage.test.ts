import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import { type CuttingProxy, startCuttingProxy } from "../postgres/cutting-proxy.ts";
import { openDatabase, startOwnPostgres } from "../postgres/database.ts";
import type { PostgresServer } from "../postgres/server.ts";
import { query } from "../stores/postgres/query.ts";
import {
  ask,
  clientOf,
  expectAway,
  expectFilms,
  type LoggedProcess,
  openFilmSite,
  openService,
  startLogged,
} from "./outage-harness.ts";
import { openSmallDisk } from "./small-disk.ts";
import { startSteadyClient } from "./steady-client.ts";
import { watchVisits } from "./visits.ts";

it.each([
  ["restarts", (server: PostgresServer) => server.restart()],
  ["crashes", crash],
])(
  "a database that %s loses no task, and all it costs are refusals",
  async (_, disturb) => {
    const server = await startOwnPostgres();
    const service = await startLogged(openService(server.url()), "all");
    const client = await clientOf(service);
    const site = await openFilmSite(2);
    const { id } = await client.post(site.url("long.mp4"));
    await site.until(() => site.sent > 0);
    const steady = startSteadyClient(service, site.url("short.mp4"));
    await steady.taken(5);
    await disturb(server);
    const backMs = performance.now();
    await steady.taken(1);
    expect(performance.now() - backMs).toBeLessThan(2_000);
    await steady.taken(5);
    await expectFilms(client, [id, ...(await steady.stop())]);
    expect(steady.longestMs).toBeLessThan(10_000);
  },
  60_000,
);

/** Kills one of its processes, upon which it ends the others and recovers. */
async function crash(server: PostgresServer): Promise<void> {
  const ours = "SELECT pid FROM pg_stat_activity WHERE application_name = 'unreel' LIMIT 1";
  const [backend] = await query<{ pid: number }>(server.url(), ours);
  process.kill(backend!.pid, "SIGKILL");
  const isBack = () =>
    query(server.url(), "SELECT 1").then(
      () => true,
      () => false,
    );
  await expect.poll(isBack, { timeout: 10_000 }).toBe(true);
}

it("without a way to the database what needs it is refused, and all goes on behind it", async () => {
  await Promise.all([loseWay("cut", 2_000), loseWay("stall", 12_000)]);
}, 90_000);

/** For 10 s; a refusal may take `longestMs`. */
async function loseWay(disturbance: "cut" | "stall", longestMs: number): Promise<void> {
  const { proxy, url } = await openWay();
  const cluster = openService(url);
  const api = await startLogged(cluster, "api");
  const workers = [await startLogged(cluster, "worker"), await startLogged(cluster, "worker")];
  const client = await clientOf(api);
  const site = await openFilmSite(12);
  const visits = watchVisits(site, "long.mp4");
  const { id } = await client.post(site.url("long.mp4"));
  await site.until(() => site.sent > 0);
  proxy[disturbance]();
  const endMs = performance.now() + 10_000;
  while (performance.now() < endMs) {
    const refused = await Promise.all([
      ask(api, "/tasks/", site.url("short.mp4")),
      ...["/tasks/", `/tasks/${id}`].map((path) => ask(api, path)),
      ...[api, ...workers].map((each) => ask(each, "/health/ready")),
    ]);
    refused.forEach(expectAway);
    expect(Math.max(...refused.map(({ ms }) => ms)), disturbance).toBeLessThan(longestMs);
    for (const each of [api, ...workers]) {
      expect((await ask(each, "/health/live")).status).toBe(200);
    }
    await sleep(500);
  }
  // The worker has given up the task by itself.
  await visits.over();
  proxy.restore();
  const again = await ask(api, "/tasks/", site.url("short.mp4"));
  expect([again.status, again.ms < 2_000], disturbance).toEqual([201, true]);
  await expectFilms(client, [id, again.body["id"]]);
  expect(visits.mostAtOnce, disturbance).toBe(1);
  await expectLog(api, feedOutage);
  for (const worker of workers) await expectLog(worker, [...feedOutage, ...claimOutage]);
}

async function openWay(): Promise<{ proxy: CuttingProxy; url: string }> {
  const { pathname } = new URL(await openDatabase());
  const proxy = await startCuttingProxy(inject("postgresUrl"));
  onTestFinished(() => proxy.close());
  return { proxy, url: proxy.url(pathname.slice(1)) };
}

const feedOutage = [
  "task event listener reconnected",
  "task event listener disconnected; reconnecting",
];
const claimOutage = ["claiming tasks failed; retrying every second", "claiming tasks works again"];

/** That the log has these lines once, and others only of requests and runs. */
async function expectLog({ log }: LoggedProcess, lines: string[]): Promise<void> {
  const others = () =>
    log.map(({ msg }) => String(msg)).filter((line) => !/^(request|run)( |$)/.test(line));
  await expect.poll(() => others().toSorted(), { timeout: 10_000 }).toEqual(lines.toSorted());
}

it("a full database refuses new tasks, goes on answering, and takes them when there is room", async () => {
  const disk = await openSmallDisk();
  const service = await startLogged(openService(disk.url), "all");
  const client = await clientOf(service);
  const site = await openFilmSite(2);
  const visits = watchVisits(site, "long.mp4");
  const { id } = await client.post(site.url("long.mp4"));
  const post = () => ask(service, "/tasks/", site.url("short.mp4"));
  const ids: unknown[] = [id];
  await site.until(() => site.sent > 0);
  await disk.fill();
  let answer = await post();
  for (; answer.status === 201; answer = await post()) ids.push(answer.body["id"]);
  expectAway(answer);
  await visits.over();
  for (const path of ["/tasks/", `/tasks/${id}`, "/health/live"]) {
    expect((await ask(service, path)).status).toBe(200);
  }
  await disk.makeRoom();
  answer = await post();
  expect(answer.status).toBe(201);
  await expectFilms(client, [...ids, answer.body["id"]]);
}, 60_000);

it("a task whose answer was lost with the connection is the answer to whoever asks again", async () => {
  const { proxy, url } = await openWay();
  const api = await startLogged(openService(url), "api");
  const ask3 = () => ask(api, "/tasks/", "https://a.test/", { "idempotency-key": "once" });
  const direct = new URL(inject("postgresUrl"));
  direct.pathname = new URL(url).pathname;
  const commit = await holdCommit(direct.href);
  const lost = ask3();
  await commit.begun();
  proxy.cut();
  expectAway(await lost);
  const [task] = await commit.release();
  proxy.restore();
  const answers = await Promise.all([ask3(), ask3(), ask3()]);
  for (const { status, body } of answers) expect([status, body["id"]]).toEqual([201, task]);
  expect(await query(direct.href, "SELECT id FROM unreel.tasks")).toEqual([{ id: task }]);
});

/** The commit of the next task waits at its end for `release`, which gives the ids of all tasks behind it. */
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
    async begun() {
      await expect.poll(() => rows(waiting)).toHaveLength(1);
    },
    async release() {
      await rows("SELECT pg_advisory_unlock(1)");
      await expect.poll(() => rows(stored)).toHaveLength(1);
      return (await rows(stored)).map(({ id }) => id);
    },
  };
}
