import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { HostPauses } from "../../src/net/host-pauses.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";

const local = { allowNetworks: ["127.0.0.1/32"] };
const film = resource("video/mp4", readMedium("index-first.mp4"));
const resources = new Map([["film.mp4", film]]);

describe("a limit of the speed", () => {
  const engine = createNativeEngine({ ...local, maxSpeedBps: film.body.length, maxSpeedPerHostBps: 1e9 });
  afterAll(() => engine.close());

  it("lets downloads wait, who say so, and changes nothing of their files", async () => {
    await using one = await openEntry(() => engine, resources, "film.mp4");
    await using other = await openEntry(() => engine, resources, "film.mp4");
    const files = await Promise.all([one.download(), other.download()]);
    expect(files.map(({ size }) => size)).toEqual([film.body.length, film.body.length]);
    expect(files[0].sha256).toBe(files[1].sha256);
    for (const { progress } of [one, other]) {
      expect(progress.some(({ waiting_for }) => waiting_for === "speed")).toBe(true);
    }
  });
});

describe("a pause that a host asks for", () => {
  it("holds for all downloads of the process, which then send it nothing", async () => {
    const pauses = new HostPauses();
    const engine = createNativeEngine({ ...local, pauses });
    await using told = await openEntry(() => engine, resources, "film.mp4");
    told.site.answer("film.mp4", (response) => response.writeHead(503, { "retry-after": "60" }).end());
    await expect(told.download()).rejects.toMatchObject({ upstreamStatus: 503, retryAfterS: 60 });
    const host = new URL(told.job.format.url).host;
    expect(pauses.leftS(host)).toBeGreaterThan(0);
    const asked = told.site.asked.length;
    await expect(told.download({ folder: await told.newFolder() })).rejects.toMatchObject({
      code: "upstream_status",
      retryable: true,
      isUntried: true,
    });
    expect(told.site.asked).toHaveLength(asked);
    await using other = await openEntry(() => engine, resources, "film.mp4");
    expect(await other.download()).toMatchObject({ size: film.body.length });
    await engine.close();
  });

  it("is waited for within the download if it is short, which says so", async () => {
    const pauses = new HostPauses();
    const engine = createNativeEngine({ ...local, pauses });
    await using harness = await openEntry(() => engine, resources, "film.mp4");
    const waits: boolean[] = [];
    const { promise: sent, resolve: onSent } = Promise.withResolvers<void>();
    harness.site.answer("film.mp4", (response) => response.writeHead(429, { "retry-after": "1" }).end(onSent));
    const download = engine.download(harness.job, {
      signal: new AbortController().signal,
      onProgress() {},
      onWaiting: (isWaiting) => void waits.push(isWaiting),
    });
    await sent;
    harness.site.answer("film.mp4", async (_response, serve) => serve());
    expect(await download).toMatchObject({ size: film.body.length });
    expect(waits).toEqual([true, false]);
    await engine.close();
  });
});
