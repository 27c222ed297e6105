import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { openDatabase } from "../postgres/database.ts";
import { query } from "../stores/postgres/query.ts";
import { addKey, runKeyProgram } from "./keys.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";

/** Returns the URL of an empty database, with a password, and what the command calls it. */
async function openNamedDatabase() {
  const url = new URL(await openDatabase());
  url.password = "hidden";
  const socket = `${url.searchParams.get("host")}:5432`;
  return { url: url.href, name: `the database ${url.pathname.slice(1)} at ${socket}` };
}

const newStore = "this store is new: its keys apply only to a service whose STORE_URL and DATA_DIR name it\n";
const keyNotice = "the key, which is shown only now:\n";

it("npm run key -- add --help prints the usage, and needs no store", async () => {
  const env = { DATA_DIR: join(makeFolder(), "missing") };
  const { code, stdout, stderr } = await runKeyProgram(env, "add", "--help");
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^usage: npm run -s key -- add NAME [^]* list\n[^]* remove NAME/);
  expect(existsSync(env.DATA_DIR)).toBe(false);
});

it("npm run key reads no setting but those of the store", async () => {
  const env = { DATA_DIR: makeFolder(), PORT: "x", ROLE: "worker", WEBHOOK_URL: "ftp://x", HEARTBEAT_S: "0" };
  expect(await runKeyProgram(env, "add", "anna")).toMatchObject({ code: 0 });
  expect(await runKeyProgram({ ...env, STORE_URL: "x" }, "list")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("STORE_URL must begin with one of"),
  });
});

it("npm run key works where the path of DATA_DIR is too long for a socket", async () => {
  const env = { DATA_DIR: join(makeFolder(), "x".repeat(120)) };
  expect(await runKeyProgram(env, "add", "anna")).toMatchObject({ code: 0 });
  expect(await runKeyProgram(env, "list")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("anna"),
  });
});

describe("npm run key says which store it used:", () => {
  it("list and remove name the file that is missing, and create none", async () => {
    const DATA_DIR = join(makeFolder(), "missing");
    const [usual, other] = [join(DATA_DIR, "tasks.db"), join(DATA_DIR, "other.db")];
    for (const [line, env, file] of [
      ["list", { DATA_DIR }, usual],
      ["remove anna", { DATA_DIR: relative(".", DATA_DIR) }, usual],
      ["remove anna --last", { DATA_DIR, STORE_URL: `sqlite:${other}` }, other],
    ] as const) {
      const [command] = line.split(" ");
      expect(await runKeyProgram(env, ...line.split(" "))).toEqual({
        code: 1,
        stdout: "",
        stderr: `key: cannot ${command} keys: there is no file ${file}; STORE_URL and DATA_DIR must have the values that the service uses\n`,
      });
    }
    expect(existsSync(DATA_DIR)).toBe(false);
  });

  it("add also that it created the store, so that keys can be there before the first start", async () => {
    const DATA_DIR = join(makeFolder(), "new");
    const first = await runKeyProgram({ DATA_DIR }, "add", "anna");
    const store = `sqlite:${join(DATA_DIR, "tasks.db")}`;
    expect(first.stderr).toBe(`anna was added to the keys of ${store}\n${newStore}${keyNotice}`);
    const second = await runKeyProgram({ DATA_DIR }, "add", "bert");
    expect(second.stderr).toBe(`bert was added to the keys of ${store}\n${keyNotice}`);
  });

  it("a file that STORE_URL names, in results and in refusals", async () => {
    const folder = makeFolder();
    const env = { DATA_DIR: join(folder, "unused"), STORE_URL: `sqlite:${join(folder, "a.db")}` };
    const errors = async (...args: string[]) => (await runKeyProgram(env, ...args)).stderr;
    await addKey(env, "anna");
    await addKey(env, "bert");
    expect(await errors("list")).toBe(`the keys of ${env.STORE_URL}:\n`);
    const taken = `key: there is a key anna already (keys of ${env.STORE_URL})\n`;
    expect(await errors("add", "anna")).toBe(taken);
    const removed = `anna was removed from the keys of ${env.STORE_URL}\n`;
    expect(await errors("remove", "anna")).toBe(removed);
    await errors("remove", "bert", "--last");
    expect(await runKeyProgram(env, "list")).toEqual({
      code: 0,
      stdout: "",
      stderr: `${env.STORE_URL} has no keys: whoever reaches the service may use it\n`,
    });
  });

  it("that of a running service, by the DATA_DIR which they share", async () => {
    const env = { DATA_DIR: makeFolder(), CONCURRENCY: "0" };
    await startTestService(env);
    const name = `the service that runs on DATA_DIR ${env.DATA_DIR}`;
    const errors = async (...args: string[]) => (await runKeyProgram(env, ...args)).stderr;
    expect(await errors("list")).toBe(`${name} has no keys: whoever reaches the service may use it\n`);
    const added = `anna was added to the keys of ${name}\n${keyNotice}`;
    expect(await errors("add", "anna")).toBe(added);
    expect(await errors("remove", "bert")).toBe(`key: there is no key bert (keys of ${name})\n`);
    const removed = `anna was removed from the keys of ${name}\n`;
    expect(await errors("remove", "anna", "--last")).toBe(removed);
  });

  it("a database, whose password it never prints; list and remove create no tables in it", async () => {
    const { url, name } = await openNamedDatabase();
    const env = { DATA_DIR: makeFolder(), STORE_URL: url };
    for (const [command = "", ...args] of [["list"], ["remove", "anna"]]) {
      const { code, stderr } = await runKeyProgram(env, command, ...args);
      expect([code, stderr]).toEqual([
        1,
        `key: cannot ${command} keys: ${name} has no tables of a service; STORE_URL and DATA_DIR must have the values that the service uses\n`,
      ]);
    }
    const schemas = "SELECT 1 FROM pg_namespace WHERE nspname LIKE 'unreel%'";
    expect(await query(url, schemas)).toEqual([]);

    const added = await runKeyProgram(env, "add", "anna");
    expect(added.stderr).toBe(`anna was added to the keys of ${name}\n${newStore}${keyNotice}`);
    expect((await runKeyProgram(env, "list")).stderr).toBe(`the keys of ${name}:\n`);
    await runKeyProgram(env, "remove", "anna", "--last");
    const { stderr } = await runKeyProgram(env, "list");
    expect(stderr).toBe(`${name} has no keys: whoever reaches the service may use it\n`);
  });

  it("a database also if a service with another store runs on the same DATA_DIR", async () => {
    const DATA_DIR = makeFolder();
    const service = await startTestService({ DATA_DIR, CONCURRENCY: "0" });
    const { url: STORE_URL, name } = await openNamedDatabase();
    const { stderr } = await runKeyProgram({ DATA_DIR, STORE_URL }, "add", "anna");
    expect(stderr).toContain(`anna was added to the keys of ${name}\n`);
    expect((await fetch(`${service.url}/tasks/`)).status).toBe(200);
  });
});
