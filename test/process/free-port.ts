import { once } from "node:events";
import { createServer } from "node:net";

/** Returns a port of 127.0.0.1 on which nothing listens. */
export async function findFreePort(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return String(port);
}
