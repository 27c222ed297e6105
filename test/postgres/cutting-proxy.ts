import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Client } from "pg";

/** A TCP proxy on 127.0.0.1 for a Postgres server, which can interrupt connections. */
export interface CuttingProxy extends AsyncDisposable {
  /** Returns the URL of the server's `database` through the proxy. */
  url(database: string): string;
  /** Resets all connections, and new ones at once. */
  cut(): void;
  /** Forwards no more bytes; connections stay open, and new ones get no response. */
  stall(): void;
  /** Resumes stalled connections and accepts new ones. */
  restore(): void;
  close(): Promise<void>;
}

/** Starts a proxy for the server that `serverUrl` names by a TCP address or by a socket's directory. */
export async function startCuttingProxy(serverUrl: string): Promise<CuttingProxy> {
  const { host, port } = new Client({ connectionString: serverUrl });
  const pairs = new Set<Pair>();
  let state: "open" | "cut" | "stalled" = "open";
  const proxy = createServer({ pauseOnConnect: true, noDelay: true }, (client) => {
    const pair = { client, server: reach(host, port) };
    pairs.add(pair);
    tie(pair, () => pairs.delete(pair));
    if (state === "open") flow(pair);
    if (state === "cut") client.resetAndDestroy();
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address() as AddressInfo;
  const cut = () => {
    state = "cut";
    for (const { client } of pairs) client.resetAndDestroy();
  };
  const close = async () => {
    cut();
    proxy.close();
    await once(proxy, "close");
  };
  return {
    url(database) {
      const url = new URL(serverUrl);
      url.searchParams.delete("host");
      url.searchParams.delete("port");
      url.host = `127.0.0.1:${address.port}`;
      url.pathname = database;
      return url.href;
    },
    cut,
    stall() {
      state = "stalled";
      for (const pair of pairs) hold(pair);
    },
    restore() {
      if (state === "stalled") for (const pair of pairs) flow(pair);
      state = "open";
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface Pair {
  client: Socket;
  server: Socket;
}

function reach(host: string, port: number): Socket {
  return host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect({ host, port, noDelay: true });
}

/** Destroys each side when the other closes. An "error" is always followed by a "close". */
function tie({ client, server }: Pair, whenClosed: () => void): void {
  client.on("error", () => {}).on("close", () => server.destroy());
  server.on("error", () => {}).on("close", () => client.destroy());
  client.on("close", whenClosed);
}

function flow({ client, server }: Pair): void {
  client.pipe(server);
  server.pipe(client);
}

function hold({ client, server }: Pair): void {
  client.unpipe(server);
  server.unpipe(client);
}
