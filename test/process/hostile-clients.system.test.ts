import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { platform } from "node:process";
import { describe, expect, it, onTestFinished } from "vitest";
import { resource } from "../media/resources.ts";
import { startTestSite } from "../media/test-site.ts";
import { openTaskClient } from "./download-client.ts";
import { paddedFilm } from "./padded-film.ts";
import { type ServiceProcess, startCommand } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { descriptors, residentBytes, stateOf } from "./usage.ts";
import { makeFolder } from "../folder.ts";

const MiB = 1024 * 1024;

async function start(env: Record<string, string>, command?: string[]): Promise<ServiceProcess> {
  return startTestService({ STORE_URL: "memory:", ...env }, command);
}

/** Opens a connection, sends `bytes` on it and reads nothing more than Node does by itself. */
async function send({ url }: ServiceProcess, bytes: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await Promise.race([once(socket, "connect"), once(socket, "close")]);
  socket.write(bytes);
  return socket;
}

/** Resolves with the status of a request on a connection of its own. */
async function askHealth({ url }: ServiceProcess): Promise<number | undefined> {
  const call = request(`${url}/health/live`, { agent: false });
  call.end();
  const [response] = await once(call, "response");
  response.resume();
  return response.statusCode;
}

/** Starts a service with a file of 16 MiB; resolves with the file's path as well. */
async function startWithFile(env: Record<string, string>) {
  const dataDir = makeFolder();
  const site = await startTestSite(new Map([["film.mp4", resource("video/mp4", paddedFilm(16 * MiB))]]));
  const service = await start({
    DATA_DIR: dataDir,
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
    ...env,
  });
  const client = await openTaskClient(service.url);
  const { id } = await client.post(site.url("film.mp4"));
  const { file } = await client.ended(id);
  client.close();
  return { service, path: String(file?.url) };
}

const post = "POST /tasks/ HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
const chunked = `${post}transfer-encoding: chunked\r\n\r\n`;
const brokenBodies = [
  `${post}content-length: 500\r\n\r\n{`,
  `${chunked}ZZ\r\n`,
  `${chunked}fffffffffffffffff\r\n`,
  `${chunked}2\n{}\n0\n\n`,
  `${chunked}2;${"a".repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
  `${chunked}2\r\n{}\r\n0\r\nx: ${"a".repeat(20_000)}`,
  `${post}transfer-encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  "GET /health/live HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
];

describe.skipIf(platform !== "linux")("the service holds nothing for clients", () => {
  it("that never read a file: few bytes each, and after the send time-out none", async () => {
    const { service, path } = await startWithFile({ SEND_TIMEOUT_S: "10" });
    // The first transfers make the heap grow for good.
    for (let i = 0; i < 10; i += 1) await (await fetch(service.url + path)).arrayBuffer();
    const memory = residentBytes(service);
    const before = descriptors(service);
    for (let i = 0; i < 200; i += 1) {
      await send(service, `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
      if (i % 50 === 0) expect(await askHealth(service)).toBe(200);
    }
    // If what is read ahead for each did not shrink with their number, it would be over 70 MiB.
    const grown = residentBytes(service) - memory;
    expect(grown).toBeLessThan(60 * MiB);
    // The system takes megabytes for each before it waits for the client.
    await expect.poll(() => descriptors(service), { timeout: 240_000 }).toBeLessThan(before + 10);
    const whole = await fetch(service.url + path);
    expect((await whole.arrayBuffer()).byteLength).toBeGreaterThan(16 * MiB);
  });

  it("that send broken bodies, also if it may have only 300 descriptors", async () => {
    const limited = ["sh", "-c", `ulimit -n 300 && exec "$0" "$@"`, ...startCommand];
    const service = await start({ RESOLVER: "stub", CONCURRENCY: "0" }, limited);
    const before = descriptors(service);
    const held: Socket[] = [];
    for (let i = 0; i < 60; i += 1) {
      // A third hangs up in the body, a third closes its side of the connection, a third waits.
      const sockets = await Promise.all(brokenBodies.map((body) => send(service, body)));
      for (const socket of sockets) {
        if (i % 3 === 0) socket.destroy();
        else if (i % 3 === 1) socket.end();
        else held.push(socket);
      }
      expect(await askHealth(service)).toBe(200);
    }
    // All but those whose body may still come.
    await expect.poll(() => descriptors(service)).toBeLessThan(before + 30);
    for (const socket of held) socket.destroy();
    await expect.poll(() => descriptors(service)).toBeLessThan(before + 5);
  });

  it("that never finish a body, if it may have only 300 descriptors: new clients come first", async () => {
    const limited = ["sh", "-c", `ulimit -n 300 && exec "$0" "$@"`, ...startCommand];
    const service = await start({ RESOLVER: "stub", CONCURRENCY: "0" }, limited);
    for (let i = 0; i < 400; i += 1) {
      await send(service, `${post}content-length: 500\r\n\r\n{`);
      if (i % 20 === 0) expect(await askHealth(service)).toBe(200);
    }
    expect(await askHealth(service)).toBe(200);
  });

  it("that connect by the thousand while it is busy: none of them has to try again", async () => {
    const service = await start({ RESOLVER: "stub", CONCURRENCY: "0" });
    service.process.kill("SIGSTOP");
    await expect.poll(() => stateOf(service)).toBe("T");
    const sockets = await Promise.all(
      Array.from({ length: 1_500 }, () => send(service, "GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n")),
    );
    service.process.kill("SIGCONT");
    const answers = await Promise.all(sockets.map(async (socket) => String((await once(socket, "data"))[0])));
    expect(new Set(answers.map((answer) => answer.slice(0, 12)))).toEqual(new Set(["HTTP/1.1 200"]));
  });
});
