import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { platform } from "node:process";
import { expect, it, onTestFinished } from "vitest";
import { hasFfmpeg } from "../media/probe.ts";
import { resource } from "../media/resources.ts";
import { clientOf } from "./test-cluster.ts";
import { startHalfSite } from "./held-site.ts";
import { openLiveSite } from "./live-site.ts";
import { paddedFilm } from "./padded-film.ts";
import type { ServiceProcess } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { descriptors, residentBytes } from "./usage.ts";
import { framesOf, openStreamReader, save } from "./stream-client.ts";
import { makeFolder } from "../folder.ts";

const MiB = 1024 * 1024;
const film = paddedFilm(48 * MiB);
const half = 32 * MiB;

async function start(env: Record<string, string> = {}, dataDir = makeFolder()) {
  const service = await startTestService({
    DATA_DIR: dataDir,
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
    ...env,
  });
  const client = await clientOf(service);
  return { service, client };
}

/** Starts a service that downloads a film of which the site holds back a third; resolves once the rest is there. */
async function startHalfDownload(env?: Record<string, string>) {
  const fixture = { resources: new Map([["film.mp4", resource("video/mp4", film)]]), entry: "film.mp4" };
  const { site, release } = await startHalfSite(fixture, half);
  const { service, client } = await start(env);
  const { id } = await client.post(site.url("film.mp4"));
  const path = `/tasks/${id}/stream`;
  const reader = await openStreamReader(service.url + path);
  await reader.until(half);
  return { service, client, id, path, reader, release };
}

/** Asks for a stream on a connection of its own, and reads nothing. */
async function openIdleReader({ url }: ServiceProcess, path: string): Promise<void> {
  const socket: Socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
  await once(socket, "readable");
}

it.skipIf(platform !== "linux")(
  "a reader of a stream that stops is broken off after SEND_TIMEOUT_S; the download and other readers go on",
  async () => {
    const { service, client, id, path, reader, release } = await startHalfDownload({ SEND_TIMEOUT_S: "5" });
    const before = descriptors(service);
    await openIdleReader(service, path);
    await expect.poll(() => descriptors(service)).toBeGreaterThan(before);
    // The other one waits for the source meanwhile: that is no fault of its client.
    await expect.poll(() => descriptors(service), { timeout: 60_000 }).toBeLessThanOrEqual(before);
    expect(await client.get(id)).toMatchObject({ state: "running" });
    release();
    expect(film.equals(await reader.all())).toBe(true);
    expect(await client.ended(id)).toMatchObject({ state: "succeeded" });
  },
);

it.skipIf(platform !== "linux")("fifty readers of a stream that stop cost few bytes each", async () => {
  const { service, client, id, path, reader, release } = await startHalfDownload();
  const memory = residentBytes(service);
  for (let count = 0; count < 50; count += 1) await openIdleReader(service, path);
  // With what has come so far in memory for each it would be 1,600 MiB.
  expect(residentBytes(service) - memory).toBeLessThan(120 * MiB);
  release();
  expect(film.equals(await reader.all())).toBe(true);
  expect(await client.ended(id)).toMatchObject({ state: "succeeded" });
});

it.skipIf(!hasFfmpeg)("a recording is sent while it is made, and ends when it is finished", async () => {
  const live = await openLiveSite();
  live.list(0, 2);
  const folder = makeFolder();
  const { service, client } = await start({}, folder);
  const reader = await openStreamReader(`${service.url}/download?url=${encodeURIComponent(live.url)}`);
  const id = reader.response.headers.get("content-location")!.replace("tasks/", "");
  await reader.untilMedia();
  live.list(0, 4);
  await client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) >= live.bytes(4));
  expect(await client.request("POST", id, "/finish")).toBe(200);
  const streamed = save(join(folder, "streamed"), await reader.all());
  expect(await client.ended(id)).toMatchObject({ state: "succeeded" });
  const file = save(join(folder, "file"), await (await client.file(id)).bytes());
  expect(framesOf(streamed)).toEqual(framesOf(file));
});
