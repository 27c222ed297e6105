import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";

/** Lets the server listen on a free port of this machine; returns the port. */
export async function listen(server: Server, host = "127.0.0.1"): Promise<number> {
  await once(server.listen(0, host), "listening");
  return (server.address() as AddressInfo).port;
}

/** Returns a port of this machine on which nothing listens. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, "close");
  return port;
}
