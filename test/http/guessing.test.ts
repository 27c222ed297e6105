import { describe, expect, test } from "vitest";
import { newSecret } from "../../src/keys/secrets.ts";
import type { App } from "../../src/http/app.ts";
import { createGuessLimit } from "../../src/http/access/access.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { addKey } from "./keys.ts";
import { openApp } from "./open-app.ts";

const here = "192.0.2.1";
const elsewhere = "192.0.2.2";

async function openWithKeys() {
  const store = createMemoryStore();
  const [anna, bert] = [await addKey(store, "anna"), await addKey(store, "bert")];
  const app = await openApp({ store });
  return { app, anna, bert };
}

async function send(app: App, remoteAddress: string, headers: Record<string, string>) {
  return app.inject({ url: "/tasks/", remoteAddress, headers });
}

async function signIn(app: App, remoteAddress: string, key: string) {
  return app.inject({ method: "POST", url: "/session", remoteAddress, payload: { key } });
}

/** Sends 1,000 wrong keys; returns how many got each status. */
async function guess(app: App, address = here): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (let n = 0; n < 1_000; n += 1) {
    const headers =
      n % 2 === 0 ? { authorization: `Bearer ${newSecret()}` } : { cookie: `unreel_session=${newSecret()}` };
    const { statusCode } = await send(app, address, headers);
    counts[statusCode] = (counts[statusCode] ?? 0) + 1;
  }
  return counts;
}

describe("1,000 wrong keys from one address", () => {
  test("that come at once are answered after the request of an owner that comes last", async () => {
    const { app, anna } = await openWithKeys();
    const order: number[] = [];
    const ask = async (headers: Record<string, string>) => order.push((await send(app, here, headers)).statusCode);
    const wrong = Array.from({ length: 1_000 }, () => ask({ authorization: `Bearer ${newSecret()}` }));
    await Promise.all([...wrong, ask(anna.headers)]);
    expect(order).toHaveLength(1_001);
    expect(order.indexOf(200)).toBeLessThan(100);
  });

  test("are answered 20 times; then they have to wait", async () => {
    const { app } = await openWithKeys();
    expect(await guess(app)).toEqual({ 401: 20, 429: 980 });
    const refused = await send(app, here, { authorization: "Bearer wrong" });
    expect(refused.json()).toMatchObject({ code: "too_many_requests", retryable: true });
    const waitS = Number(refused.headers["retry-after"]);
    expect(waitS).toBeGreaterThan(0);
    expect(waitS).toBeLessThanOrEqual(60);
  });

  test("do not lock out a right key: it passes, also at its first use, from wherever", async () => {
    const { app, anna, bert } = await openWithKeys();
    await guess(app);
    for (const address of [here, elsewhere]) {
      expect((await send(app, address, anna.headers)).statusCode).toBe(200);
      expect((await signIn(app, address, bert.secret)).statusCode).toBe(200);
    }
    expect((await signIn(app, here, newSecret())).statusCode).toBe(429);
    expect((await send(app, here, {})).statusCode).toBe(401);
  });

  test("affect nobody at other addresses", async () => {
    const { app } = await openWithKeys();
    await guess(app);
    expect((await send(app, elsewhere, { authorization: "Bearer wrong" })).statusCode).toBe(401);
  });
});

test("wrong keys from this machine are counted too", async () => {
  const { app, anna } = await openWithKeys();
  expect(await guess(app, "127.0.0.1")).toEqual({ 401: 20, 429: 980 });
  expect((await send(app, "127.0.0.1", anna.headers)).statusCode).toBe(200);
});

test("after a minute the address may try again", () => {
  let now = 0;
  const countWrong = createGuessLimit(() => now);
  for (let n = 0; n < 20; n += 1) countWrong(here);
  now = 59_999;
  expect(() => countWrong(here)).toThrow(expect.objectContaining({ code: "too_many_requests", retryAfterS: 0.001 }));
  now = 60_000;
  countWrong(here);
});
