import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import type { HttpClient, HttpResponse } from "../../src/net/client.ts";
import { get, localClient, read } from "./client.ts";

/** Sites that send a body in chunks of a byte, as fast as it is read. */
const sites = `
  const { createServer } = require("node:net");
  const { once } = require("node:events");
  const { parentPort } = require("node:worker_threads");
  const chunks = Buffer.from("1\\r\\na\\r\\n".repeat(50_000));
  const send = (socket) => {
    while (socket.write(chunks));
    socket.once("drain", () => send(socket));
  };
  const ports = Array.from({ length: 64 }, async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n");
        send(socket);
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return server.address().port;
  });
  Promise.all(ports).then((all) => parentPort.postMessage(all));
`;

/** Of this thread, milliseconds. */
const usedMs = () => process.threadCpuUsage().user / 1_000;

/** Starts the sites and requests all of them. */
async function requestSites(client: HttpClient, signal: AbortSignal): Promise<HttpResponse[]> {
  const worker = new Worker(sites, { eval: true });
  onTestFinished(async () => void (await worker.terminate()));
  const [ports] = (await once(worker, "message")) as [number[]];
  const options = { signal, owner: "eve" };
  return Promise.all(ports.map((port) => get(client, new URL(`http://127.0.0.1:${port}/`), options)));
}

/** Requests the sites and reads what they send, until the returned function is called. */
async function readSites(client: HttpClient, onRead = (): void => {}): Promise<() => void> {
  const abort = new AbortController();
  const readAll = async ({ body }: HttpResponse) => {
    for await (const _ of body) onRead();
  };
  for (const response of await requestSites(client, abort.signal)) readAll(response).catch(() => {});
  return () => abort.abort();
}

/** Starts a site that answers the first request of each connection; returns its URL. */
async function startSite(answer: (socket: Socket) => void): Promise<URL> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => answer(socket));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return new URL(`http://127.0.0.1:${port}/`);
}

test("sites that send bodies in chunks of a byte take turns with other work, and all get on", async () => {
  const abort = new AbortController();
  let longestMs = 0;
  let fromMs = usedMs();
  const onTurn = () => {
    longestMs = Math.max(longestMs, usedMs() - fromMs);
    fromMs = usedMs();
    if (!abort.signal.aborted) globalThis.setImmediate(onTurn);
  };
  const responses = await requestSites(localClient(), abort.signal);
  fromMs = usedMs();
  onTurn();
  const received = responses.map(async ({ body }) => {
    let bytes = 0;
    for await (const chunk of body) if ((bytes += chunk.length) > 20_000) return;
  });
  await Promise.all(received);
  abort.abort();
  onTurn();
  // Without turns it is seconds.
  expect(longestMs).toBeLessThan(500);
});

test.each([
  ["a connection of its own", "bob"],
  ["a connection that the other owner had opened", "eve"],
])("a page on %s does not wait until what the sites of another owner send is parsed", async (_, opener) => {
  const page = Buffer.alloc(2 << 20);
  let connections = 0;
  const url = await startSite((socket) => {
    connections += 1;
    const send = () => {
      // On a busy machine, seconds pass before the second page.
      socket.write(`HTTP/1.1 200 OK\r\nkeep-alive: timeout=60\r\ncontent-length: ${page.length}\r\n\r\n`);
      socket.write(page);
    };
    send();
    socket.on("data", send);
  });
  const client = localClient();
  const count = async (owner: string) => {
    const { body } = await get(client, url, { owner, maxBytes: page.length });
    return (await Array.fromAsync(body)).reduce((sum, { length }) => sum + length, 0);
  };
  await count(opener);
  await setImmediate();
  let others = 0;
  const stop = await readSites(client, () => (others += 1));
  others = 0;
  expect(await count("bob")).toBe(page.length);
  stop();
  expect(connections).toBe(1);
  // One read for each read of the page; without turns of owners thousands.
  expect(others).toBeLessThan(5_000);
});

test("what was received before a connection was lost arrives, also if it had to wait for its turn", async () => {
  const url = await startSite((socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 70000\r\n\r\n");
    socket.write(Buffer.alloc(60_000), () => socket.resetAndDestroy());
  });
  const client = localClient();
  const stop = await readSites(client);
  const received = Array.from({ length: 10 }, async () => {
    let bytes = 0;
    const count = async () => {
      for await (const chunk of (await get(client, url)).body) bytes += chunk.length;
    };
    await expect(count()).rejects.toMatchObject({ code: "upstream_unreachable" });
    return bytes;
  });
  expect(await Promise.all(received)).toEqual(received.map(() => 60_000));
  stop();
});

test("a connection that its server has closed is not used again, however many others are parsed", async () => {
  const url = await startSite((socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
  const client = localClient({ perHost: 20 });
  const stop = await readSites(client);
  const readOften = async () => {
    for (let n = 0; n < 5; n += 1) {
      expect(await read(client, url)).toBe("ok");
      await setImmediate();
    }
  };
  await Promise.all(Array.from({ length: 20 }, readOften));
  stop();
});
