import { spawn } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { text } from "node:stream/consumers";
import { Client } from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { startCuttingProxy } from "./cutting-proxy.ts";
import { openDatabase } from "./database.ts";
import { startPostgres } from "./server.ts";

async function connectTo(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  onTestFinished(() => client.end());
  await client.connect();
  return client;
}

async function one(client: Client, query: string): Promise<unknown> {
  const { rows } = await client.query<{ one: unknown }>(query);
  return rows[0]?.one;
}

function closing(client: Client): Promise<void> {
  return new Promise((resolve) => client.once("end", resolve));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("a test gets an empty database of its own", async () => {
  const urls = [await openDatabase(), await openDatabase()];
  const names = await Promise.all(
    urls.map(async (url) => one(await connectTo(url), "SELECT current_database() AS one")),
  );
  expect(new Set(names).size).toBe(2);
});

test("a database is dropped although it is in use", async () => {
  let drop = async () => {};
  const client = await connectTo(await openDatabase((given) => (drop = given)));
  const name = await one(client, "SELECT current_database() AS one");
  const closed = closing(client);
  await drop();
  await closed;
  const rest = await connectTo(inject("postgresUrl"));
  expect(await one(rest, `SELECT count(*)::int AS one FROM pg_database WHERE datname = '${String(name)}'`)).toBe(0);
});

test("a server comes back with its data at the same address; stopped, it leaves no folder and no process", async () => {
  const server = await startPostgres();
  const { folder } = server;
  const before = await connectTo(server.url());
  await before.query("CREATE TABLE kept AS SELECT 42 AS one");
  const closed = closing(before);
  const { pid } = server;
  await server.restart();
  await closed;
  expect(isAlive(pid)).toBe(false);
  const after = await connectTo(server.url());
  expect(await one(after, "SELECT one FROM kept")).toBe(42);
  // As user nobody if the tests run as root, else as their user.
  const uid = process.getuid?.();
  expect(statSync(`${folder}/data/postmaster.pid`).uid).toBe(uid === 0 ? 65534 : uid);
  const { pid: restarted } = server;
  await server.stop();
  expect([existsSync(folder), isAlive(restarted)]).toEqual([false, false]);
});

test("a server does not outlive a process that is killed", async () => {
  const program = `
    const { startPostgres } = await import(${JSON.stringify(new URL("server.ts", import.meta.url))});
    const { pid, folder } = await startPostgres();
    console.log(JSON.stringify({ pid, folder }));
    process.kill(process.pid, "SIGKILL");`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { pid, folder } = JSON.parse(await text(child.stdout)) as { pid: number; folder: string };
  await expect.poll(() => existsSync(folder) || isAlive(pid)).toBe(false);
});

test("a cut connection is lost, and so is each new one until all is restored", async () => {
  await using proxy = await startCuttingProxy(inject("postgresUrl"));
  const client = await connectTo(proxy.url("postgres"));
  const lost = client.query("SELECT pg_sleep(60)");
  proxy.cut();
  await expect(lost).rejects.toThrow(/ECONNRESET|terminated/);
  await expect(connectTo(proxy.url("postgres"))).rejects.toThrow(/ECONNRESET|terminated/);
  proxy.restore();
  const again = await connectTo(proxy.url("postgres"));
  expect(await one(again, "SELECT 1 AS one")).toBe(1);
});

test("a stalled connection responds once it is restored, whether old or new", async () => {
  await using proxy = await startCuttingProxy(inject("postgresUrl"));
  const client = await connectTo(proxy.url("postgres"));
  proxy.stall();
  const responded: string[] = [];
  const old = one(client, "SELECT 1 AS one").finally(() => responded.push("old"));
  const fresh = connectTo(proxy.url("postgres")).finally(() => responded.push("new"));
  const direct = await connectTo(inject("postgresUrl"));
  await direct.query("SELECT pg_sleep(0.2)");
  expect(responded).toEqual([]);
  proxy.restore();
  expect(await old).toBe(1);
  expect(await one(await fresh, "SELECT 2 AS one")).toBe(2);
});
