import { createReadStream, statSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join, normalize } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { answerParent } from "../child.ts";

/**
 * A plain file server in a child process, which answers where it listens, and when it has sent the last byte so far. A path may begin with `latency=50/`, the milliseconds that each
 * request waits, and `rate=20000000/`, the bytes per second of each response.
 */
const [folder = "."] = process.argv.slice(2);
const server = createServer((request, response) => {
  respond(request, response).catch((error: unknown) => response.destroy(error as Error));
});
server.listen(0, "127.0.0.1");

/** What the server says of itself. */
export interface MediaServer {
  base: string;
  /** Milliseconds since 1970. */
  lastSentMs: number;
}

let lastSentMs = 0;

answerParent(async (): Promise<MediaServer> => {
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, lastSentMs };
});

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const asked = (request.url ?? "/").replace(/\?.*/, "").split("/").slice(1);
  const settings = new Map<string, number>();
  while (asked[0]?.includes("=")) {
    const [name = "", value] = asked.shift()?.split("=") ?? [];
    settings.set(name, Number(value));
  }
  await wait(settings.get("latency") ?? 0);
  const path = join(folder, normalize(asked.join("/")));
  const info = statSync(path, { throwIfNoEntry: false });
  if (info === undefined) return void response.writeHead(404).end();
  const [, first = "0", last = ""] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
  const start = Number(first);
  const end = last === "" ? info.size : Number(last) + 1;
  response.writeHead(request.headers.range === undefined ? 200 : 206, {
    "content-type": types[path.slice(path.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    "content-length": end - start,
    "accept-ranges": "bytes",
    etag: `"${info.size}-${info.mtimeMs}"`,
    ...(request.headers.range !== undefined && {
      "content-range": `bytes ${start}-${end - 1}/${info.size}`,
    }),
  });
  const bytes = createReadStream(path, { start, end: end - 1, highWaterMark: 1 << 20 });
  response.on("close", () => bytes.destroy());
  response.on("finish", () => {
    lastSentMs = performance.timeOrigin + performance.now();
  });
  const rate = settings.get("rate");
  if (rate === undefined) return void bytes.pipe(response);
  for await (const chunk of bytes as AsyncIterable<Buffer>) {
    response.write(chunk);
    await wait((1000 * chunk.length) / rate);
  }
  response.end();
}

const types: Readonly<Record<string, string>> = {
  mp4: "video/mp4",
  ts: "video/mp2t",
  m3u8: "application/vnd.apple.mpegurl",
};
