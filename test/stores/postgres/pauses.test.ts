import { expect, it, onTestFinished } from "vitest";
import type { HostPause } from "../../../src/model/url-parts.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { openDatabase } from "../../postgres/database.ts";
import { pollOptions } from "./feed-harness.ts";
import { query } from "./query.ts";

/** Opens a store as a process of its own would; `heard` gets the pauses that it hears of. */
async function openProcess(url: string) {
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  const heard: HostPause[] = [];
  const unfollow = await store.pauses!.follow((pause) => heard.push(pause));
  const secondsOf = (host: string) => heard.findLast((pause) => pause.host === host)?.seconds ?? 0;
  // It may hear of a pause twice: when it begins to follow them, and when it has connected.
  const hosts = () => [...new Set(heard.map(({ host }) => host))].toSorted();
  return { pauses: store.pauses!, heard, hosts, secondsOf, unfollow };
}

it("a pause reaches all processes, also one that starts before it ends", async () => {
  const url = await openDatabase();
  const [one, other] = [await openProcess(url), await openProcess(url)];
  await one.pauses.share({ host: "busy.example", seconds: 60 });
  for (const { secondsOf } of [one, other]) {
    await expect.poll(() => secondsOf("busy.example"), pollOptions).toBeGreaterThan(50);
    expect(secondsOf("busy.example")).toBeLessThanOrEqual(60);
  }
  await other.pauses.share({ host: "other.example:8080", seconds: 30 });
  await expect.poll(() => one.secondsOf("other.example:8080"), pollOptions).toBeGreaterThan(20);
  const late = await openProcess(url);
  expect(late.hosts()).toEqual(["busy.example", "other.example:8080"]);
  late.unfollow();
  const count = late.heard.length;
  await one.pauses.share({ host: "third.example", seconds: 30 });
  await expect.poll(() => one.secondsOf("third.example"), pollOptions).toBeGreaterThan(0);
  expect(late.heard).toHaveLength(count);
});

it("a pause that ends later stays, and one that has ended is forgotten", async () => {
  const url = await openDatabase();
  const { pauses } = await openProcess(url);
  await pauses.share({ host: "a.example", seconds: 600 });
  await pauses.share({ host: "a.example", seconds: 5 });
  await pauses.share({ host: "b.example", seconds: 5 });
  await pauses.share({ host: "b.example", seconds: 600 });
  await pauses.share({ host: "ended.example", seconds: 600 });
  await query(url, "UPDATE unreel.host_pauses SET ends_at = now() WHERE host = 'ended.example'");
  const { heard, hosts } = await openProcess(url);
  expect(hosts()).toEqual(["a.example", "b.example"]);
  expect(heard.every(({ seconds }) => seconds > 500)).toBe(true);
  await pauses.share({ host: "last.example", seconds: 600 });
  expect(await query(url, "SELECT host FROM unreel.host_pauses ORDER BY host")).toEqual(
    ["a.example", "b.example", "last.example"].map((host) => ({ host })),
  );
});

it("what a process tells is heard by all that follow, in its order", async () => {
  const url = await openDatabase();
  const [one, other] = [await openPostgresStore({ url }), await openPostgresStore({ url })];
  const heard: [string[], string[]] = [[], []];
  const ends = [one, other].map(({ broadcast }, n) => broadcast!.follow((text) => heard[n]!.push(text)));
  const hasStarted = async () => {
    await one.broadcast!.send("start");
    return heard.every((texts) => texts.includes("start"));
  };
  await expect.poll(hasStarted, pollOptions).toBe(true);
  const texts = ["first", 'it\'s "second"', "x".repeat(7_900)];
  for (const text of texts) await one.broadcast!.send(text);
  const rest = () => heard.map((each) => each.filter((text) => text !== "start"));
  await expect.poll(() => JSON.stringify(rest()) === JSON.stringify([texts, texts]), pollOptions).toBe(true);
  ends[0]?.();
  await other.broadcast!.send("last");
  await expect.poll(() => heard[1].at(-1), pollOptions).toBe("last");
  expect(rest()[0]).toHaveLength(texts.length);
  await Promise.all([one.close(), other.close()]);
  await expect(one.broadcast!.send("")).rejects.toMatchObject({ code: "unavailable" });
});
