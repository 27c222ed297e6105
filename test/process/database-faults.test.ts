import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, it, onTestFinished } from "vitest";
import { openPostgresStore } from "../../src/stores/postgres.ts";
import { openDatabase, startOwnPostgres } from "../postgres/database.ts";
import { query } from "../stores/postgres/query.ts";

const main = fileURLToPath(new URL("../../src/start.js", import.meta.url));

it.each([
  ["host=127.0.0.1 user=u password=secret dbname=d", /STORE_URL must begin with one of memory:/],
  ["postgres://u:12/secret@db.test/d", /STORE_URL must name a database/],
  ["postgres://u:12/secret@db.test", /STORE_URL must name a database/],
  ["postgres:u:secret@db.test/d", /STORE_URL must name a database/],
  ["postgres:///u:secret@db.test/d", /STORE_URL must name a database/],
  ["postgres://u:secret@db.test/d?sslcert=/none", /STORE_URL must be the URL of a database/],
])("%s is refused", async (url, words) => {
  await expectRefusal(url, words);
});

it("an unknown host is named", async () => {
  await expectRefusal(
    "postgres://u:secret@nowhere.invalid/d",
    /d at nowhere\.invalid:5432 \(STORE_URL\): /,
  );
});

it("a port at which nobody listens is named", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  await expectRefusal(`postgres://u:secret@127.0.0.1:${port}/d`, /: connect ECONNREFUSED/);
});

it.each([
  ["says nothing", () => {}, /timeout/],
  ["speaks HTTP", (socket: Socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"), /terminated/],
])("a server that %s is no database", async (_, answer, words) => {
  const server = createServer(
    (socket) => void socket.on("error", () => {}).once("data", () => answer(socket)),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  await expectRefusal(`postgres://u:secret@127.0.0.1:${port}/d`, words);
});

it("a wrong user or password is called that", async () => {
  const server = await startOwnPostgres();
  await query(server.url(), "CREATE ROLE guest LOGIN PASSWORD 'right'");
  const access = join(server.folder, "data", "pg_hba.conf");
  const others = await readFile(access, "utf8");
  await writeFile(access, `local all guest,nobody scram-sha-256\n${others}`);
  await query(server.url(), "SELECT pg_reload_conf()");
  for (const user of ["guest", "nobody"]) {
    const url = new URL(server.url());
    Object.assign(url, { username: user, password: "secret" });
    await expectRefusal(url.href, /the user or the password is wrong .*"(guest|nobody)"/);
  }
});

it("a user without the right to make tables is told so", async () => {
  const url = await guestUrl(await openDatabase());
  await expectRefusal(url.href, /the user may not create schemas and tables/);
});

async function guestUrl(database: string): Promise<URL> {
  const url = new URL(database);
  const role = `guest_${url.pathname.slice(1)}`;
  await query(database, `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  onTestFinished(() => query(inject("postgresUrl"), `DROP ROLE ${role}`).then(() => undefined));
  return Object.assign(url, { username: role, password: "secret" });
}

it("a database that is not there is named", async () => {
  const url = new URL(inject("postgresUrl"));
  url.pathname = "nowhere";
  url.password = "secret";
  await expectRefusal(url.href, /there is no such database .*"nowhere"/);
});

it("a server that is too old is refused", async () => {
  const url = await openDatabase();
  // What the service asks for the version; found before the server's own.
  await query(
    url,
    `CREATE SCHEMA older;
     CREATE FUNCTION older.current_setting(name text) RETURNS text LANGUAGE sql
       AS $$ SELECT CASE name WHEN 'server_version_num' THEN '140019' ELSE '14.19' END $$;`,
  );
  const { pathname } = new URL(url);
  await query(url, `ALTER DATABASE ${pathname.slice(1)} SET search_path = older, pg_catalog`);
  await expectRefusal(url, /Postgres must be version 15 or newer; the server is version 14\.19$/);
});

it("tables of a newer version are left alone", async () => {
  const url = await openDatabase();
  const store = await openPostgresStore({ url });
  await store.close();
  await query(url, "INSERT INTO unreel.migrations (version) VALUES (99)");
  await expectRefusal(url, /its schema version is 99, and this release knows versions up to \d+$/);
});

it.each([
  "CREATE SCHEMA unreel CREATE TABLE tasks (id int)",
  "CREATE SCHEMA unreel CREATE TABLE migrations (id int)",
  "CREATE SCHEMA unreel CREATE VIEW migrations AS SELECT 0 AS version",
  "CREATE SCHEMA unreel_jobs CREATE TABLE version (id int)",
  "CREATE SCHEMA unreel_jobs CREATE TABLE job (id int)",
])("what somebody else keeps under our names is left alone: %s", async (statement) => {
  const url = await openDatabase();
  await query(url, statement);
  await expectRefusal(url, /cannot open .*unreel/);
});

/** That the start ends within 10 s by exit code 1 and one line on stderr, and never says the password. */
async function expectRefusal(url: string, words: RegExp): Promise<void> {
  const { code, stdout, stderr } = await start(url);
  expect(stderr.split("\n")).toEqual([expect.stringMatching(/^unreel: ./), ""]);
  expect(stderr.trimEnd()).toMatch(words);
  expect(code).toBe(1);
  expect(stdout + stderr).not.toMatch("secret");
}

async function start(storeUrl: string) {
  const env = { PATH: process.env["PATH"], PORT: "0", DATA_DIR: tmpdir(), STORE_URL: storeUrl };
  const { promise, resolve } = Promise.withResolvers<{
    code: unknown;
    stdout: string;
    stderr: string;
  }>();
  execFile(process.execPath, [main], { env, timeout: 10_000 }, (error, stdout, stderr) =>
    resolve({ code: error?.code, stdout, stderr }),
  );
  return promise;
}
