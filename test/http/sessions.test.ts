import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { App } from "../../src/http/app.ts";
import { buildApp } from "./app.ts";
import { openKeyRing } from "../../src/keys/key-ring.ts";
import { createMemoryStore, openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { Task } from "../../src/model/task.ts";
import { makeFolder } from "../folder.ts";
import { addKey } from "./keys.ts";
import { pageUrl, postTask } from "./requests.ts";
import { openApp } from "./open-app.ts";

/** Returns the cookies that a response sets: the session's, and the one that scripts can read. */
function cookiesOf({ headers }: Awaited<ReturnType<App["inject"]>>): string[] {
  return [headers["set-cookie"] ?? []].flat();
}

async function start(app: App, secret: string, headers: Record<string, string> = {}) {
  const response = await app.inject({
    method: "POST",
    url: "/session",
    headers: { "content-type": "application/json", ...headers },
    payload: JSON.stringify({ key: secret }),
  });
  const [cookie = ""] = cookiesOf(response)[0]?.split(";") ?? [];
  return { response, cookie: { cookie } };
}

/** An app with anna's key. */
async function openWithKey() {
  const store = createMemoryStore();
  const { secret, headers } = await addKey(store, "anna");
  const keys = await openKeyRing({ keys: store.keys });
  onTestFinished(() => keys.close());
  const app = await openApp({ store, keys });
  return { app, store, keys, secret, headers };
}

async function statusOf(app: App, headers: Record<string, string>): Promise<number> {
  return (await app.inject({ url: "/tasks/", headers })).statusCode;
}

describe("a session", () => {
  test("begins with a key, and its cookie stands for that key", async () => {
    const { app, secret } = await openWithKey();
    const { response, cookie } = await start(app, secret);
    expect(response.json()).toEqual({ name: "anna", admin: false });
    expect(response.headers["cache-control"]).toBe("no-store");
    const created = await postTask(app, { url: pageUrl }, cookie);
    expect(created.json<Task>().owner).toBe("anna");
    expect(await statusOf(app, cookie)).toBe(200);
  });

  test("has a cookie for this path alone that scripts and other sites cannot use", async () => {
    const { app, secret } = await openWithKey();
    const { response } = await start(app, secret);
    const [session = "", signedIn] = cookiesOf(response);
    const [, ...attributes] = session.split("; ");
    expect(attributes).toEqual(["Max-Age=2592000", "HttpOnly", "SameSite=Strict"]);
    expect(session).not.toContain(secret);
    expect(signedIn).toBe("unreel_signed_in=1; Max-Age=2592000; SameSite=Strict");
  });

  test("says whose it is, as a key does; without keys there is none", async () => {
    const { app, secret, headers } = await openWithKey();
    const { cookie } = await start(app, secret);
    for (const proof of [cookie, headers]) {
      const response = await app.inject({ url: "/session", headers: proof });
      expect(response.json()).toEqual({ name: "anna", admin: false });
      expect(response.headers["cache-control"]).toBe("no-store");
    }
    await using open = await buildApp();
    expect((await open.inject({ url: "/session", headers: cookie })).json()).toMatchObject({
      code: "not_found",
      detail: "this service has no keys",
    });
    expect((await start(open, secret)).response.json()).toMatchObject({
      code: "unauthorized",
      detail: "this service has no keys",
    });
  });

  test.each([
    { origin: "https://localhost" },
    { "x-forwarded-proto": "https" },
    { "x-forwarded-proto": "https, http", origin: "http://localhost" },
  ])("is only sent over HTTPS if it began there: %j", async (headers) => {
    const { app, secret } = await openWithKey();
    const { response } = await start(app, secret, { host: "localhost", ...headers });
    const cookies = cookiesOf(response);
    expect(cookies.filter((cookie) => cookie.includes("; Secure"))).toHaveLength(2);
  });

  test("does not begin with a wrong key", async () => {
    const { app } = await openWithKey();
    const { response } = await start(app, "unreel_wrong");
    expect(response.statusCode).toBe(401);
    expect(response.headers).not.toHaveProperty("set-cookie");
    expect(response.headers["www-authenticate"]).toBe("Bearer");
    expect(response.body).not.toContain("wrong");
  });

  test("cannot be used by pages of other sites, for anything that changes something", async () => {
    const { app, store, secret } = await openWithKey();
    const { cookie } = await start(app, secret);
    const { id } = (await postTask(app, { url: pageUrl }, cookie)).json<Task>();
    for (const proof of [
      { "sec-fetch-site": "cross-site" },
      { origin: "https://attacker.example" },
      { origin: "null" },
      { origin: "http://other.localhost" },
    ]) {
      const headers = { host: "localhost", ...cookie, ...proof };
      const posted = await postTask(app, { url: pageUrl }, headers);
      const deleted = await app.inject({ method: "DELETE", url: `/tasks/${id}`, headers });
      const ended = await app.inject({ method: "DELETE", url: "/session", headers });
      const began = (await start(app, secret, { host: "localhost", ...proof })).response;
      for (const response of [posted, deleted, ended, began]) {
        expect([response.statusCode, response.json().code]).toEqual([403, "cross_site"]);
      }
    }
    expect((await store.list({ limit: 9 })).tasks).toHaveLength(1);
    const own = { host: "localhost", origin: "http://localhost", "sec-fetch-site": "same-origin" };
    expect((await postTask(app, { url: pageUrl }, { ...cookie, ...own })).statusCode).toBe(201);
  });

  test("ends in the browser with DELETE: the cookies are dropped", async () => {
    const { app } = await openWithKey();
    const ended = await app.inject({ method: "DELETE", url: "/session" });
    expect(ended.statusCode).toBe(204);
    expect(cookiesOf(ended)).toEqual([
      "unreel_session=; Max-Age=0; HttpOnly; SameSite=Strict",
      "unreel_signed_in=; Max-Age=0; SameSite=Strict",
    ]);
  });

  test("ends with its key, also if a new key gets the name", async () => {
    const { app, store, keys, secret } = await openWithKey();
    await addKey(store, "bert");
    const { cookie } = await start(app, secret);
    await store.keys.remove("anna");
    await addKey(store, "anna");
    await keys.refresh();
    expect(await statusOf(app, cookie)).toBe(401);
  });

  test("outlives a restart, and is known to no one who reads the store", async () => {
    const path = join(makeFolder(), "tasks.db");
    const before = openSqliteStore({ path });
    const { secret } = await addKey(before, "anna");
    const app = await buildApp({ store: before });
    const { cookie } = await start(app, secret);
    const [key] = await before.keys.list();
    await app.close();
    await before.close();

    const store = openSqliteStore({ path });
    onTestFinished(() => store.close());
    await using restarted = await buildApp({ store });
    expect(await statusOf(restarted, cookie)).toBe(200);
    for (const stored of [key?.hash, key?.session_hash]) {
      expect(await statusOf(restarted, { cookie: `unreel_session=${stored}` })).toBe(401);
      expect(await statusOf(restarted, { authorization: `Bearer ${stored}` })).toBe(401);
    }
  });

  test("is no key, and a key is no session", async () => {
    const { app, secret } = await openWithKey();
    const { cookie } = await start(app, secret);
    const token = cookie.cookie.split("=")[1];
    expect(await statusOf(app, { authorization: `Bearer ${token}` })).toBe(401);
    expect(await statusOf(app, { cookie: `unreel_session=${secret}` })).toBe(401);
  });
});
