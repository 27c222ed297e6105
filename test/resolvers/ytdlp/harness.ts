import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer } from "node:net";
import type { Lookup } from "../../../src/net/addresses/address-guard.ts";
import { openGuardedProxy } from "../../../src/net/proxy/guarded-proxy.ts";
import { openYtDlp, type YtDlp, type YtDlpOptions } from "../../../src/resolvers/ytdlp/yt-dlp.ts";
import { createTestLog } from "../../log.ts";
import { installed } from "./installed.ts";
import { listen } from "../../net/listen.ts";

/** yt-dlp behind a guarded proxy that may reach 127.0.0.1 only, with its log. */
export interface YtDlpHarness extends AsyncDisposable {
  readonly ytDlp: YtDlp;
  readonly log: readonly object[];
}

type HarnessOptions = Partial<YtDlpOptions> & { lookup?: Lookup };

export async function openHarness(options: HarnessOptions = {}): Promise<YtDlpHarness> {
  const { lookup, ...rest } = options;
  const proxy = await openGuardedProxy({
    allowNetworks: ["127.0.0.1/32"],
    ...(lookup && { lookup }),
  });
  const { log, logger } = createTestLog();
  try {
    const ytDlp = await openYtDlp({
      path: installed?.script ?? "",
      searchPath: process.env["PATH"] ?? "",
      cookiesFile: "",
      concurrency: 2,
      timeoutMs: 60_000,
      proxy,
      logger,
      ...rest,
    });
    if (ytDlp === undefined) throw new Error(JSON.stringify(log));
    return {
      ytDlp,
      log,
      async [Symbol.asyncDispose]() {
        await ytDlp.close();
        await proxy.close();
      },
    };
  } catch (error) {
    await proxy.close();
    throw error;
  }
}

/** A web site on 127.0.0.1. */
export interface Site extends AsyncDisposable {
  /** Without a slash at its end. */
  readonly origin: string;
}

export async function openSite(respond: (request: IncomingMessage, response: ServerResponse) => void): Promise<Site> {
  const server = createServer(respond);
  const port = await listen(server, "127.0.0.1");
  return {
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A server on 127.0.0.2, which the proxy never reaches: each connection to it is an escape. */
export interface Canary extends AsyncDisposable {
  readonly port: number;
  /** `127.0.0.2:PORT` */
  readonly host: string;
  readonly connections: number;
}

export async function openCanary(): Promise<Canary> {
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections += 1;
    socket.on("error", () => {}).end("HTTP/1.1 204 No Content\r\n\r\n");
  });
  const port = await listen(server, "127.0.0.2");
  return {
    port,
    host: `127.0.0.2:${port}`,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      server.close();
    },
  };
}

/** Responds with an HTML page. */
export function sendPage(response: ServerResponse, html: string): void {
  response.setHeader("content-type", "text/html; charset=utf-8").end(html);
}

export const never: AbortSignal = new AbortController().signal;
