import { buildApp } from "../../test/http/app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { fillStore } from "./fill.ts";
import { createReadyResolver, type Route, type RouteName, routes } from "./routes.ts";
import type { Sample } from "./server.ts";

/** Returns the service's response to the route's request, for the bare servers to send. */
export async function takeSample(routeName: RouteName): Promise<Sample> {
  const store = createMemoryStore({ maxQueued: Number.POSITIVE_INFINITY });
  await fillStore(store, 1_000);
  const app = await buildApp({ store, resolver: createReadyResolver() });
  const { method, path, query = "", body }: Route = routes[routeName];
  const response = await app.inject({
    method,
    url: `${path}${query}`,
    ...(body !== undefined && { headers: { "content-type": "application/json" }, body }),
  });
  await app.close();
  const own = Object.entries(response.headers).filter(([name]) => !byNode.has(name));
  return {
    status: response.statusCode,
    headers: Object.fromEntries(own.map(([name, value]) => [name, String(value)])),
    body: response.body,
  };
}

/** Headers that `node:http` adds itself. */
const byNode = new Set(["date", "connection", "keep-alive", "transfer-encoding"]);
