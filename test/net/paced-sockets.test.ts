import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { get, localClient } from "./client.ts";

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

test("sites that send bodies in chunks of a byte take turns with other work, and all get on", async () => {
  const worker = new Worker(sites, { eval: true });
  onTestFinished(async () => void (await worker.terminate()));
  const [ports] = (await once(worker, "message")) as [number[]];
  const client = localClient();
  const abort = new AbortController();
  let longestMs = 0;
  let fromMs = usedMs();
  const onTurn = () => {
    longestMs = Math.max(longestMs, usedMs() - fromMs);
    fromMs = usedMs();
    if (!abort.signal.aborted) setImmediate(onTurn);
  };
  const responses = await Promise.all(
    ports.map((port) => get(client, new URL(`http://127.0.0.1:${port}/`), { signal: abort.signal })),
  );
  fromMs = usedMs();
  onTurn();
  const received = responses.map(async ({ body }) => {
    let bytes = 0;
    for await (const chunk of body) if ((bytes += chunk.length) > 20_000) return;
  });
  await Promise.all(received);
  abort.abort();
  onTurn();
  expect(longestMs).toBeLessThan(100);
}, 60_000);
