import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startOwnPostgres } from "../postgres/database.ts";
import { query } from "../stores/postgres/query.ts";
import { startRefused } from "./service.ts";
import { listen } from "../net/listen.ts";

// The other messages are in test/stores/postgres/opening.system.test.ts: the program prints them in the same way.

it.each([
  ["host=127.0.0.1 user=u password=secret dbname=d", /STORE_URL must begin with one of memory:/],
  ["postgres://u:12/secret@db.test/d", /STORE_URL must name a database/],
])("%s is refused", async (url, words) => {
  await expectRefusal(url, words);
});

it("names a server that does not respond", async () => {
  const server = createServer((socket) => void socket.on("error", () => {}));
  const port = await listen(server);
  onTestFinished(() => void server.close());
  await expectRefusal(`postgres://u:secret@127.0.0.1:${port}/d`, /timeout/);
});

it("says that the user or the password is wrong", async () => {
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

/** Expects exit code 1 and one line on stderr that matches `words`, and the password nowhere. */
async function expectRefusal(STORE_URL: string, words: RegExp): Promise<void> {
  const { code, stdout, stderr } = await startRefused({ DATA_DIR: tmpdir(), STORE_URL });
  expect(stderr.split("\n")).toEqual([expect.stringMatching(/^unreel: ./), ""]);
  expect(stderr.trimEnd()).toMatch(words);
  expect(code).toBe(1);
  expect(stdout + stderr).not.toMatch("secret");
}
