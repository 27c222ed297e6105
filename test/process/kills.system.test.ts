import { hash } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import type { Task } from "../../src/model/task.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { makeLongMedia, makeMedia } from "../media/long-media.ts";
import { hasFfmpeg } from "../media/probe.ts";
import { resource } from "../media/resources.ts";
import { openDatabase } from "../postgres/database.ts";
import type { TaskClient } from "./download-client.ts";
import { film, openSite } from "./film-site.ts";
import { openLiveSite } from "./live-site.ts";
import { paddedFilm } from "./padded-film.ts";
import { clientOf, openTestCluster } from "./test-cluster.ts";

const stores: [string, () => Promise<string>][] = [
  ["SQLite", async () => "sqlite:"],
  ["Postgres", () => openDatabase()],
];
const env = { CONCURRENCY: "4", CONCURRENCY_PER_HOST: "9" };
const longFilm = paddedFilm(3_000_000);
const longFilmHash = hash("sha256", longFilm);

describe.each(stores)("a service with %s", (_store, openStore) => {
  // One time more than the deaths after which a task counts as poison.
  it("that is killed six times, most as soon as it listens, completes what it was downloading and recording, and new tasks", async () => {
    const site = await openSite({ bytesPerSecond: 50_000 });
    const names = ["long-0.mp4", "long-1.mp4"];
    for (const name of names) site.resources.set(name, resource("video/mp4", longFilm));
    site.resources.set("new.mp4", resource("video/mp4", film));
    const live = await openLiveSite();
    live.list(0, 3);
    const cluster = openTestCluster(await openStore(), env);
    const first = await cluster.start("all");
    const before = await clientOf(first);
    const ids: string[] = [];
    for (const url of [...names.map((name) => site.url(name)), live.url]) ids.push((await before.post(url)).id);
    const recording = ids.at(-1)!;
    await Promise.all(ids.map((id) => before.until(id, hasMoreThan(0))));
    await first.end("SIGKILL");
    for (let kills = 1; kills < 6; kills += 1) await (await cluster.start("all")).end("SIGKILL");
    const after = await clientOf(await cluster.start("all"));
    const { id } = await after.post(site.url("new.mp4"));
    await site.until(() => site.asked.some(({ path }) => path === "new.mp4"));
    live.list(3, 6);
    await after.until(recording, hasMoreThan(live.bytes(4)));
    expect(await after.request("POST", recording, "/finish")).toBe(200);
    site.bytesPerSecond = Infinity;
    for (const each of [id, ...ids]) {
      expect(await after.ended(each)).toMatchObject({ state: "succeeded", attempts: 1 });
    }
    for (const each of ids.slice(0, 2)) expect((await after.get(each)).file?.sha256).toBe(longFilmHash);
  });
});

describe("a service that is restarted each time it ends", () => {
  it.skipIf(!hasFfmpeg)(
    "makes the same files with parts, chapters and subtitles, although it was killed five times, each further",
    async () => {
      const site = await openSite();
      const slow = await Promise.all(Object.entries(partialFiles).map(([name, line]) => serveSlowly(site, name, line)));
      const { resources } = await makeLongMedia("HLS in fMP4");
      for (const [path, found] of resources) site.resources.set(path, found);
      // It takes five minutes: each life must see it get on, also on a slow machine.
      const filmSite = await openSite({ bytesPerSecond: 10_000 });
      filmSite.resources.set("long.mp4", resource("video/mp4", longFilm));
      // Of ten segments the site serves three, then one more in each life of the service, and all in the last.
      let served = 3;
      for (let n = 0; n < 10; n += 1) {
        site.answer(`s00${n}.m4s`, (_response, serve) => site.until(() => n < served).then(serve));
      }
      const words = "WEBVTT\n\n00:01.000 --> 00:19.000\nlong\n";
      site.resources.set("de.vtt", resource("text/vtt", words));
      const listed = { "@type": "VideoObject", name: "A film", contentUrl: site.url("index.m3u8") };
      const clips = [0, 8].map((startOffset) => ({ "@type": "Clip", name: `from ${startOffset}`, startOffset }));
      const stated = JSON.stringify({ "@context": "https://schema.org", ...listed, hasPart: clips });
      const html = `<script type="application/ld+json">${stated}</script><video src="index.m3u8"><track kind="subtitles" srclang="de" src="de.vtt"></video>`;
      site.resources.set("watch", resource("text/html", html));
      const options = {
        subtitles: true,
        ranges: [
          { start: 1.5, end: 9.1 },
          { start: 11, end: 18 },
        ],
      };
      const cluster = openTestCluster("sqlite:", env);
      let service = await cluster.start("all");
      const first = await clientOf(service);
      const { id } = await first.post(site.url("watch"), options);
      const ids = await Promise.all(slow.map(async ({ url }) => (await first.post(url, parts)).id));
      const whole = await first.post(filmSite.url("long.mp4"));
      const known = new Map<string, number>();
      for (let kills = 0; kills < 5; kills += 1) {
        const now = await clientOf(service);
        for (const each of [id, whole.id]) {
          const { progress } = await now.until(each, hasMoreThan(known.get(each) ?? 0));
          known.set(each, progress?.downloaded_bytes ?? 0);
        }
        // Of five parts there is none left for a fifth death.
        if (kills < 4) await Promise.all(slow.map(({ untilHeld }) => untilHeld()));
        await service.end("SIGKILL");
        for (const { serve } of slow) serve(kills < 3 ? 1 : Infinity);
        served = kills < 4 ? served + 1 : 10;
        service = await cluster.start("all");
      }
      filmSite.bytesPerSecond = Infinity;
      const last = await clientOf(service);
      expect(await last.ended(whole.id)).toMatchObject({
        state: "succeeded",
        attempts: 1,
        file: { sha256: longFilmHash },
      });
      const killed = await last.ended(id);
      const undisturbed = await last.ended((await last.post(site.url("watch"), options)).id);
      expect([killed.state, killed.attempts, killed.file?.warnings]).toEqual(["succeeded", 1, []]);
      expect(killed.file?.duration).toBeCloseTo(14.6, 1);
      const digests = ({ files = [] }: Task) => files.map(({ kind, sha256 }) => [kind, sha256]);
      expect(digests(killed)).toEqual(digests(undisturbed));
      expect(killed.files?.map(({ kind }) => kind)).toEqual(["media", "subtitles", "subtitles"]);
      for (const [index, { url, bytes, sent }] of slow.entries()) {
        const ended = await last.ended(ids[index]!);
        expect(sent()).toBeLessThan(bytes);
        const again = await last.ended((await last.post(url, parts)).id);
        expect(ended).toMatchObject({ state: "succeeded", attempts: 1, file: { warnings: [] } });
        expect(ended.file?.sha256).toBe(again.file?.sha256);
      }
    },
  );

  it("dies five times of a page that kills whoever reads it, and completes a task that it read meanwhile", async () => {
    const site = await openSite();
    const cluster = openTestCluster("sqlite:", env);
    let deaths = 0;
    site.answer("poison.mp4", (_response, _serve, { headers }) => {
      deaths += 1;
      process.kill(Number(headers["x-process"]), "SIGKILL");
    });
    site.resources.set("slow.mp4", resource("video/mp4", film));
    site.answer("slow.mp4", (_response, serve) => deaths > 1 && serve());
    const store = openSqliteStore({ path: join(cluster.dataDir, "tasks.db") });
    const poison = await store.create(newTask(site.url("poison.mp4"), {}, new Date()));
    const slow = await store.create(newTask(site.url("slow.mp4"), {}, new Date()));
    await store.close();
    let ended: Task | undefined;
    let last: TaskClient | undefined;
    for (let lives = 0; ended === undefined && lives < 12; lives += 1) {
      const service = await cluster.start("all");
      const killed = once(service.process, "exit").then(() => undefined);
      const live = async () => (last = await clientOf(service)).ended(poison.id);
      ended = await Promise.race([killed, live().catch(() => undefined)]);
    }
    const error = { code: "internal", retryable: false, message: expect.stringContaining("poison task: 5 ") };
    expect(ended).toMatchObject({ state: "failed", attempts: 1, error });
    expect(deaths).toBe(5);
    expect(await last!.ended(slow.id)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(await last!.ended((await last!.post(site.url("film.mp4"))).id)).toMatchObject({ state: "succeeded" });
  });
});

const sources = "-f lavfi -i testsrc2=size=160x90:rate=5:duration=60 -f lavfi -i sine=duration=60 -g 10 -b:v 200k";
/** Files of which only parts are fetched. */
const partialFiles = {
  "parts.webm": `${sources} -c:v libvpx-vp9 -cpu-used 8 -deadline realtime -c:a libopus`,
  "parts.mp4": `${sources} -c:v libx264 -preset veryfast -c:a aac -movflags +frag_keyframe+empty_moov+default_base_moof+global_sidx`,
};
const parts = {
  ranges: [
    { start: 10.3, end: 11 },
    { start: 20, end: 21.5 },
    { start: 30.2, end: 31 },
    { start: 40, end: 41 },
    { start: 50.2, end: 51 },
  ],
};

/** Serves a file, of which at first the first part that is asked for; the next ones once `serve` allows them. */
async function serveSlowly(site: Awaited<ReturnType<typeof openSite>>, name: string, line: string) {
  const { resources } = await makeMedia(`${line} ${name}`, name);
  const served = resources.get(name)!;
  site.resources.set(name, served);
  let most = 1;
  /** The parts that were asked for, in their order; the page resolver asks for all of the file. */
  const ranges = () => [...new Set(site.asked.flatMap(({ path, range }) => (path === name && range) || []))];
  site.answer(name, (_response, serve, { headers: { range } }) => {
    return site.until(() => range === undefined || ranges().indexOf(range) < most).then(serve);
  });
  return {
    url: site.url(name),
    bytes: served.body.length,
    /** Resolves once a part is asked for that is not served. */
    untilHeld: () => site.until(() => ranges().length > most),
    serve: (more: number) => void (most += more),
    /** Bytes of all parts that were asked for. */
    sent: () => ranges().reduce((sum, range) => sum + lengthOf(range), 0),
  };
}

function lengthOf(range: string): number {
  const [, first = "0", last = "0"] = /^bytes=(\d+)-(\d+)$/.exec(range) ?? [];
  return Number(last) - Number(first) + 1;
}

function hasMoreThan(bytes: number): (task: Task) => boolean {
  return ({ progress }) => (progress?.downloaded_bytes ?? 0) > bytes;
}
