import { readdirSync, readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, vi } from "vitest";
import { openDatabase } from "../postgres/database.ts";
import { addKey, bearer, runKeyProgram } from "./keys.ts";
import { collectLog } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { openTestCluster } from "./test-cluster.ts";
import { makeFolder } from "../folder.ts";

/** Starts a service that ends with the test. */
async function start(env: Record<string, string>) {
  return startTestService({ CONCURRENCY: "0", ...env });
}

async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(`${url}/tasks/`, { headers });
  await response.arrayBuffer();
  return response.status;
}

/** Opens an event stream; `ended` resolves to all that it had, once the service ends it. */
async function openStream(url: string, headers: Record<string, string>) {
  const response = await fetch(`${url}/tasks/events`, { headers });
  expect(response.status).toBe(200);
  return { ended: text(response.body!) };
}

/** Sends a line to the service's socket; returns the line that it sends back. */
async function sendLine(folder: string, line: object): Promise<string> {
  const socket = connect(join(folder, "keys.sock"));
  socket.write(`${JSON.stringify(line)}\n`);
  return await text(socket);
}

const secretPattern = /^unreel_[\w-]{43}\n$/;

describe("npm run key", () => {
  it("adds, lists and removes keys while no service runs, and keeps nothing of them but hashes", async () => {
    const env = { DATA_DIR: makeFolder() };
    const added = await runKeyProgram(env, "add", "anna", "--admin", "--max-bytes", "1000");
    expect(added).toEqual({
      code: 0,
      stdout: expect.stringMatching(secretPattern),
      stderr: expect.stringMatching(/\nthe key, which is shown only now:\n$/),
    });
    const secret = await addKey(env, "bert");
    for (const name of readdirSync(env.DATA_DIR)) {
      const bytes = readFileSync(join(env.DATA_DIR, name));
      expect(bytes.includes(secret)).toBe(false);
      expect(bytes.includes(secret.slice("unreel_".length))).toBe(false);
    }
    const { stdout } = await runKeyProgram(env, "list");
    expect(stdout).toMatch(/^anna +admin +\S+Z +max_bytes=1000\nbert +- +\S+Z\n$/);
    const removed = { code: 0, stdout: "removed anna\n" };
    expect(await runKeyProgram(env, "remove", "anna")).toMatchObject(removed);
    expect((await runKeyProgram(env, "list")).stdout).toMatch(/^bert [^\n]*\n$/);
  });

  it("tells of a webhook where it is, but neither its path nor its secret", async () => {
    const env = { DATA_DIR: makeFolder() };
    const url = "https://hooks.example.com:8443/services/T01/hidden?token=hidden";
    await addKey(env, "anna", "--rate", "60", "--webhook", url);
    await addKey(env, "bert");
    const { stdout } = await runKeyProgram(env, "list");
    expect(stdout).toMatch(/^anna .* rate=60 {2}webhook=https:\/\/hooks\.example\.com:8443$/m);
    expect(stdout).toMatch(/^bert .*Z$/m);
    expect(stdout).not.toMatch(/hidden|services|whsec_/);
  });

  it("refuses in one line what it cannot do", async () => {
    const env = { DATA_DIR: makeFolder() };
    await addKey(env, "anna");
    const refused: [string[], number, RegExp][] = [
      [["add", "Anna"], 2, /^key: NAME must be [^\n]*"Anna"\nusage: /],
      [["add", "anna"], 1, /^key: there is a key anna already \(keys of [^\n]*\)\n$/],
      [["remove", "bert"], 1, /^key: there is no key bert \(keys of [^\n]*\)\n$/],
      [["remove", "anna"], 1, /^key: anna is the last key: [^\n]*--last removes it \(keys of [^\n]*\)\n$/],
    ];
    for (const [args, code, stderr] of refused) {
      expect(await runKeyProgram(env, ...args)).toEqual({ code, stdout: "", stderr: expect.stringMatching(stderr) });
    }
  });

  it("finds no service with its keys in memory", async () => {
    const env = { DATA_DIR: makeFolder(), STORE_URL: "memory:" };
    const { code, stderr } = await runKeyProgram(env, "list");
    expect([code, stderr]).toEqual([
      1,
      `key: no service runs on DATA_DIR ${env.DATA_DIR}; keys in memory exist only while one does\n`,
    ]);
  });
});

describe.each(["sqlite:", "memory:"])("a running service with %s", (STORE_URL) => {
  it("takes keys at once, over a socket that is for its user alone", async () => {
    const env = { DATA_DIR: makeFolder(), STORE_URL };
    const { url } = await start(env);
    expect(await statusOf(url)).toBe(200);
    const [socket, token] = ["keys.sock", "keys.token"].map((name) => statSync(join(env.DATA_DIR, name)));
    expect([socket!.isSocket(), socket!.mode & 0o777]).toEqual([true, 0o600]);
    expect([token!.isFile(), token!.mode & 0o777]).toEqual([true, 0o600]);

    const [anna, root] = [await addKey(env, "anna"), await addKey(env, "root", "--admin")];
    expect(await statusOf(url)).toBe(401);
    expect(await statusOf(url, bearer(anna))).toBe(200);
    expect((await fetch(`${url}/health/ready`)).status).toBe(200);
    expect((await runKeyProgram(env, "list")).stdout).toMatch(/^anna [^\n]*\nroot [^\n]*\n$/);
    expect(await runKeyProgram(env, "add", "anna")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^key: there is a key anna already /),
    });

    const stream = await openStream(url, bearer(anna));
    await runKeyProgram(env, "remove", "anna");
    expect(await stream.ended).not.toContain("event:");
    expect(await statusOf(url, bearer(anna))).toBe(401);
    expect(await statusOf(url, bearer(root))).toBe(200);
    await runKeyProgram(env, "remove", "root", "--last");
    expect(await statusOf(url)).toBe(200);
  });
});

describe("the socket for keys", () => {
  it("takes no command without the token of the service that runs", async () => {
    const env = { DATA_DIR: makeFolder() };
    const first = await start(env);
    const earlier = readFileSync(join(env.DATA_DIR, "keys.token"), "utf8");
    await first.end("SIGKILL");
    const { url } = await start(env);
    const token = readFileSync(join(env.DATA_DIR, "keys.token"), "utf8");
    const command = { command: "add", name: "mallory", admin: true, limits: {} };
    const refused = `{"error":"a key command must come with the token in ${env.DATA_DIR}/keys.token"}\n`;
    const others = [command, { command }, { token: "", command }, { token: `${token}x`, command }];
    for (const line of [...others, { token: earlier, command }]) {
      expect(await sendLine(env.DATA_DIR, line)).toBe(refused);
    }
    expect(await statusOf(url)).toBe(200);
    expect(await sendLine(env.DATA_DIR, { token, command })).toContain('"secret":"unreel_');
    expect(await statusOf(url)).toBe(401);
  });
});

describe("a service with another store in the folder of one that runs", () => {
  it("leaves the socket to that one, says so, and serves", async () => {
    const env = { DATA_DIR: makeFolder() };
    const first = await start(env);
    const second = await start({ ...env, STORE_URL: "memory:" });
    const warning = "keys can be changed only while the service is stopped: it has no socket in DATA_DIR";
    expect(second.startLog.map(({ msg }) => msg)).toContain(warning);
    expect(await statusOf(second.url)).toBe(200);
    await second.end("SIGTERM");
    const anna = await addKey(env, "anna");
    expect(await statusOf(first.url)).toBe(401);
    expect(await statusOf(first.url, bearer(anna))).toBe(200);
  });
});

describe("a service that was killed", () => {
  it("leaves a socket that is in nobody's way; keys and sessions are there again", async () => {
    const env = { DATA_DIR: makeFolder() };
    const first = await start(env);
    const anna = await addKey(env, "anna");
    const session = await fetch(`${first.url}/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key: anna }),
    });
    const [cookie = ""] = session.headers.getSetCookie()[0]!.split(";");
    await first.end("SIGKILL");
    expect(readdirSync(env.DATA_DIR)).toContain("keys.sock");
    const bert = await addKey(env, "bert");

    const second = await start(env);
    for (const headers of [bearer(anna), bearer(bert), { cookie }]) {
      expect(await statusOf(second.url, headers)).toBe(200);
    }
    expect(await statusOf(second.url)).toBe(401);
    await runKeyProgram(env, "remove", "anna");
    expect(await statusOf(second.url, { cookie })).toBe(401);
    await second.end("SIGTERM");
    expect(readdirSync(env.DATA_DIR).filter((name) => name.startsWith("keys."))).toEqual([]);
  });
});

describe("processes that share a database", () => {
  it("all follow within seconds: keys, and the end of their event streams", async () => {
    const storeUrl = await openDatabase();
    const cluster = openTestCluster(storeUrl);
    const [here, there] = [await cluster.start("api"), await cluster.start("api")];
    const env = { DATA_DIR: cluster.dataDir, STORE_URL: storeUrl };
    const [anna, root] = [await addKey(env, "anna"), await addKey(env, "root", "--admin")];
    for (const { url } of [here, there]) {
      const become = (status: number, headers = {}) =>
        vi.waitUntil(async () => (await statusOf(url, headers)) === status, 60_000);
      await become(401);
      await become(200, bearer(anna));
      await become(200, bearer(root));
    }
    const streams = await Promise.all([here, there].map(({ url }) => openStream(url, bearer(anna))));
    await runKeyProgram(env, "remove", "anna");
    await Promise.all(streams.map(({ ended }) => ended));
    expect(await statusOf(there.url, bearer(anna))).toBe(401);
    expect(await statusOf(there.url, bearer(root))).toBe(200);
  });
});

describe("the log", () => {
  it("warns once if whoever reaches the service may use it, and never has a key", async () => {
    const env = { DATA_DIR: makeFolder(), HOST: "0.0.0.0", LOG_LEVEL: "trace" };
    const warnings = (lines: readonly object[]) =>
      lines.filter((line) => String(Reflect.get(line, "msg")).startsWith("there are no keys"));
    const open = await start(env);
    expect(warnings(open.startLog)).toHaveLength(1);
    await open.end("SIGTERM");

    const secret = await addKey(env, "anna");
    const service = await start(env);
    expect(warnings(service.startLog)).toEqual([]);
    const log = collectLog(service);
    const { port } = new URL(service.url);
    const url = `http://127.0.0.1:${port}`;
    await statusOf(url, bearer(secret));
    await statusOf(`${url}/nothing/${secret}?key=${secret}`, bearer(secret));
    for (const body of [JSON.stringify({ key: secret }), secret, `{"key":["${secret}"]}`]) {
      const response = await fetch(`${url}/session`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      expect(await response.text()).not.toContain(secret);
    }
    await service.end("SIGTERM");
    expect(log.length).toBeGreaterThan(3);
    expect(JSON.stringify(log)).not.toContain(secret);
  });
});
