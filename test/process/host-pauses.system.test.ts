import { Client } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { resource } from "../media/resources.ts";
import { openDatabase } from "../postgres/database.ts";
import { film, openSite } from "./film-site.ts";
import { collectLog, type ServiceProcess } from "./service.ts";
import { clientOf, openTestCluster } from "./test-cluster.ts";

const notSent = /was not sent: the host asked for a pause \(Retry-After\)/;

it("a host that has asked one process for a pause is left alone by all of them, and their tasks wait; others share a limit of the speed", async () => {
  const site = await openSite();
  const other = await openSite();
  const asked: string[] = [];
  const longer = Promise.withResolvers<void>();
  const bothAsked = Promise.withResolvers<void>();
  for (const name of ["busy", "busier", ...Array.from({ length: 1_000 }, (_, n) => `page${n}`)]) {
    site.resources.set(name, resource("text/html", "<title>A page</title>"));
    site.answer(name, async (response, serve) => {
      asked.push(name);
      if (!name.startsWith("bus")) return serve();
      if (asked.length === 2) bothAsked.resolve();
      await (name === "busier" ? longer : bothAsked).promise;
      response.writeHead(429, { "retry-after": name === "busier" ? "600" : "20" }).end();
    });
  }
  let number = 0;
  /** Returns why a page that no process has asked for cannot be read. */
  const readNext = async ({ url }: ServiceProcess, name = `page${(number += 1)}`): Promise<string> => {
    const response = await fetch(`${url}/info?url=${encodeURIComponent(site.url(name))}`);
    return ((await response.json()) as { detail?: string }).detail ?? "";
  };
  const database = await openDatabase();
  const cluster = openTestCluster(database, { MAX_SPEED_BPS: String(Math.round(film.length / 3)) });
  const [one, two] = [await cluster.start("all"), await cluster.start("api")];
  const logs = [one, two].map(collectLog);
  // The pause of another request, which was sent already, is longer.
  const busier = readNext(one, "busier");
  expect(await readNext(one, "busy")).toMatch(/429/);
  longer.resolve();
  expect(await busier).toMatch(/429/);
  await expect.poll(async () => readNext(two)).toMatch(notSent);
  const msg = "a host has asked for a pause (Retry-After): its tasks wait";
  const line = { host: new URL(site.url("")).host, seconds: expect.any(Number) };
  for (const log of logs)
    await expect.poll(() => log.filter((each) => each["msg"] === msg)).toEqual([expect.objectContaining(line)]);
  const three = await cluster.start("all");
  const before = asked.length;
  for (const service of [one, two, three]) expect(await readNext(service)).toMatch(notSent);

  // Others go on meanwhile, and their process says once a second what they have received.
  const { promise: said, resolve: onSaid } = Promise.withResolvers<string>();
  await listen(database, onSaid);
  const client = await clientOf(two);
  const { id } = await client.post(site.url("film.mp4"));
  const good = await client.post(other.url("film.mp4"));
  expect(await client.ended(good.id)).toMatchObject({ state: "succeeded" });
  expect(await client.get(id)).toMatchObject({ state: "queued", attempts: 0 });
  expect(asked).toHaveLength(before);
  const some = expect.any(Number);
  expect(JSON.parse(await said)).toEqual({ from: expect.any(String), demands: [["", some, some, some]] });
});

/** Calls `onText` with what processes tell each other. */
async function listen(database: string, onText: (text: string) => void): Promise<void> {
  const client = new Client({ connectionString: database });
  onTestFinished(() => client.end());
  client.on("notification", ({ payload = "" }) => onText(payload)).on("error", () => {});
  await client.connect();
  await client.query("LISTEN unreel_broadcast");
}
