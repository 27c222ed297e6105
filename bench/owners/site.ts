import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { readMedium } from "../../test/media/rendition.ts";

export interface OwnersSite extends AsyncDisposable {
  /**
   * Address of a path: `page…` has a title and an image, `film…` is a film, `image…` its picture, and `hook…` receives
   * messages.
   */
  url(path: string): string;
  /** Address of the same on another host, where pages, images and hooks never answer. */
  slowUrl(path: string): string;
  /** Resolves when the first message about a task comes. */
  received(taskId: string): Promise<void>;
  /** Breaks the connections that wait for an answer. */
  letGo(): void;
}

export async function openOwnersSite(): Promise<OwnersSite> {
  const film = readMedium("index-first.mp4");
  const receivers = new Map<string, () => void>();
  const receive = async (message: IncomingMessage) => {
    const { data } = JSON.parse(await text(message)) as { data: { id: string } };
    receivers.get(data.id)?.();
    receivers.delete(data.id);
  };
  const waiting = new Set<ServerResponse>();

  const fast = await listen("127.0.0.1", (path, response, request) => {
    if (path.startsWith("film")) return response.setHeader("content-type", "video/mp4").end(film);
    if (path.startsWith("image")) return response.setHeader("content-type", "image/png").end(pixel);
    if (path.startsWith("page")) {
      return response
        .setHeader("content-type", "text/html")
        .end(pageWith(`http://127.0.0.1:${portOf(fast)}/image/${path}`));
    }
    return receive(request).then(() => response.end());
  });
  const slow = await listen("127.0.0.2", (path, response) => {
    if (path.startsWith("film")) return response.setHeader("content-type", "video/mp4").end(film);
    // The page of an image answers, the image does not.
    if (path.startsWith("page/image")) {
      const image = path.slice("page/".length);
      return response.setHeader("content-type", "text/html").end(pageWith(`http://127.0.0.2:${portOf(slow)}/${image}`));
    }
    waiting.add(response);
    return response.on("close", () => waiting.delete(response));
  });
  return {
    url: (path) => `http://127.0.0.1:${portOf(fast)}/${path}`,
    slowUrl: (path) => `http://127.0.0.2:${portOf(slow)}/${path}`,
    received: (taskId) => new Promise((resolve) => void receivers.set(taskId, resolve)),
    letGo() {
      for (const response of waiting) response.destroy();
    },
    async [Symbol.asyncDispose]() {
      for (const server of [fast, slow]) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

async function listen(
  host: string,
  answer: (path: string, response: ServerResponse, request: IncomingMessage) => unknown,
): Promise<Server> {
  const server = createServer((request, response) => {
    answer((request.url ?? "").slice(1), response, request);
  });
  server.listen({ host, port: 0, backlog: 2_048 });
  await once(server, "listening");
  return server;
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;

function pageWith(image: string): string {
  return `<!doctype html><title>A film</title><meta property="og:title" content="A film"><meta property="og:image" content="${image}">`;
}

const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);
