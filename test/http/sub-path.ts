import { request } from "node:http";
import { startUpstream } from "../net/upstream.ts";

/** Starts a proxy that serves the service on `port` below `path`, such as `/a/b/`, and says nothing of it. Returns its URL. */
export async function startSubPath(port: number | string, path: string): Promise<URL> {
  const proxy = await startUpstream((incoming, response) => {
    const { url = "", method, headers } = incoming;
    if (!url.startsWith(path)) return response.writeHead(404).end();
    const outgoing = request({ port, path: url.slice(path.length - 1), method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    outgoing.on("error", () => response.destroy());
    response.on("close", () => outgoing.destroy());
    return incoming.pipe(outgoing);
  });
  return proxy.url(path);
}
