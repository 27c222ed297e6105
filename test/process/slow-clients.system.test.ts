import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ServiceProcess, startService } from "./service.ts";

let service: ServiceProcess;
const sockets: Socket[] = [];
let drippingClient: Promise<string>;

beforeAll(async () => {
  service = await startService({ STORE_URL: "memory:", RESOLVER: "stub", CONCURRENCY: "0" });
  drippingClient = dripHeader();
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await service.end("SIGKILL");
});

/** Sends a byte of a header twice a second until the server ends the connection; resolves with its response. */
async function dripHeader(): Promise<string> {
  const socket = await open();
  let response = "";
  socket.on("data", (chunk) => (response += chunk));
  const drip = setInterval(() => socket.write("x"), 500);
  socket.write("GET /tasks/ HTTP/1.1\r\nx");
  await once(socket, "close");
  clearInterval(drip);
  return response;
}

async function open(): Promise<Socket> {
  const { port } = new URL(service.url);
  const socket = connect(Number(port), "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

async function expectServed(): Promise<void> {
  for (const path of ["/tasks/", "/info?url=https%3A%2F%2Fexample.com%2F", "/health/ready"]) {
    expect((await fetch(service.url + path)).status).toBe(200);
  }
}

describe("other clients are served while", () => {
  it("200 clients send a header and never its end", async () => {
    for (let i = 0; i < 200; i++) (await open()).write("GET /tasks/ HTTP/1.1\r\nhost: a\r\nx-");
    await expectServed();
  });

  it("200 clients send half of a body and never the rest", async () => {
    const head = "POST /tasks/ HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
    for (let i = 0; i < 200; i++) (await open()).write(`${head}content-length: 100\r\n\r\n{"url"`);
    await expectServed();
  });

  it("10,000 connections are open and idle", async () => {
    for (let i = 0; i < 100; i++) await Promise.all(Array.from({ length: 100 }, open));
    expect(sockets.filter((socket) => socket.readyState === "open").length).toBeGreaterThanOrEqual(10_000);
    await expectServed();
  });
});

it("a client that sends a header byte by byte gets 408 after a while", async () => {
  expect(await drippingClient).toMatch(/^HTTP\/1\.1 408 /);
});
