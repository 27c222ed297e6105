import { openPartStore } from "../../src/engines/native/parts/part-store.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";

/** A process to be killed: fetches part `file` and prints the stored bytes. Usage: `parts-child.ts <folder> <url>`. */
const [folder = "", url = ""] = process.argv.slice(2);
const parts = await openPartStore({
  folder,
  client: createHttpClient({ allowNetworks: ["127.0.0.1/32"], totalTimeoutMs: 60_000 }),
  identity: "format 1",
  maxBytes: Number.POSITIVE_INFINITY,
  checkFreeSpace: async () => {},
});
const signal = AbortSignal.timeout(60_000);
const onBytes = () => process.stdout.write(`${parts.bytes}\n`);
await parts.fetch({ name: "file", url: new URL(url), range: null }, { signal, onBytes });
