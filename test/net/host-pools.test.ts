import { createServer, type ServerResponse } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { bodyOf, get, localClient, read } from "./client.ts";
import { listen } from "./listen.ts";

/** A server that is many hosts, and lets clients keep their connections for an hour. `ports` are those of its connections, by host. */
async function startHosts() {
  const open = new Map<string, Set<number>>();
  const waiting: ServerResponse[] = [];
  const server = createServer({ keepAliveTimeout: 3_600_000 }, ({ url }, response) => {
    if (url === "/slow") {
      response.write("first ");
      waiting.push(response);
    } else response.end("all");
  });
  server.on("connection", (socket) => {
    const { localAddress = "", remotePort = 0 } = socket;
    const ports = open.getOrInsertComputed(localAddress, () => new Set());
    ports.add(remotePort);
    socket.once("close", () => ports.delete(remotePort));
  });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const port = await listen(server, "0.0.0.0");
  const urlOf = (n: number, path = "/") => new URL(`http://127.0.1.${n}:${port}${path}`);
  const countOpen = () => open.values().reduce((sum, { size }) => sum + size, 0);
  return { urlOf, countOpen, portsOf: (n: number) => [...(open.get(`127.0.1.${n}`) ?? [])], waiting };
}

it("connections without requests stay open to 64 hosts, those whose last requests have ended last", async () => {
  const { urlOf, countOpen, portsOf } = await startHosts();
  const client = localClient();
  for (let n = 1; n <= 64; n += 1) await read(client, urlOf(n));
  const [first] = portsOf(1);
  await read(client, urlOf(1));
  expect(portsOf(1)).toEqual([first]);
  for (let n = 65; n <= 127; n += 1) await read(client, urlOf(n));
  await expect.poll(countOpen).toBe(64);
  expect([portsOf(1), portsOf(64)]).toEqual([[first], []]);
});

it("connections with requests do not count, and are not closed", async () => {
  const { urlOf, countOpen, portsOf, waiting } = await startHosts();
  const client = localClient();
  const slow = await Promise.all([1, 2, 3].map((n) => get(client, urlOf(n, "/slow"))));
  const ports = [1, 2, 3].map(portsOf);
  for (let n = 4; n <= 100; n += 1) await read(client, urlOf(n));
  await expect.poll(countOpen).toBe(67);
  for (const response of waiting) response.end("last");
  expect(await Promise.all(slow.map(bodyOf))).toEqual(["first last", "first last", "first last"]);
  expect([1, 2, 3].map(portsOf)).toEqual(ports);
  await expect.poll(countOpen).toBe(64);
});

it("connections of a host stay open while one of its requests has not ended", async () => {
  const { urlOf, portsOf, waiting } = await startHosts();
  const client = localClient();
  const slow = await get(client, urlOf(1, "/slow"));
  await read(client, urlOf(1));
  const ports = portsOf(1);
  for (let n = 2; n <= 66; n += 1) await read(client, urlOf(n));
  await read(client, urlOf(1));
  expect([ports.length, portsOf(1)]).toEqual([2, ports]);
  waiting[0]!.end("last");
  expect(await bodyOf(slow)).toBe("first last");
});
