import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTcpServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { listen } from "./listen.ts";

export interface Upstream {
  /** URL of `path` on this server, with the host name `host`. */
  url(path: string, host?: string): URL;
  port: number;
  /** All connections that were accepted. */
  sockets: Socket[];
}

/** Starts an HTTP server on 127.0.0.1, closed after the test. */
export function startUpstream(listener: RequestListener): Promise<Upstream> {
  return start(createServer({ keepAliveTimeout: 60_000 }, listener));
}

/** Starts a TCP server that calls `talk` when a connection has sent its first bytes. */
export function startRawUpstream(talk: (socket: Socket) => void): Promise<Upstream> {
  return start(
    createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => talk(socket));
    }),
  );
}

async function start(server: ReturnType<typeof createTcpServer>): Promise<Upstream> {
  const sockets: Socket[] = [];
  server.on("connection", (socket: Socket) => sockets.push(socket));
  const port = await listen(server);
  onTestFinished(async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, "close");
  });
  const url = (path: string, host = "127.0.0.1") => new URL(`http://${host}:${port}${path}`);
  return { url, port, sockets };
}
