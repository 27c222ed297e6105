import { once } from "node:events";
import { type IncomingHttpHeaders, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { App } from "../../src/http/app.ts";
import { buildApp } from "./app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { addFinishedTask } from "./finished-task.ts";
import { addIllustrated, illustrated } from "./images.ts";
import { pageUrl } from "./requests.ts";
import { clientOf } from "./thumbnail-calls.ts";

const folder = makeSharedFolder();
const store = createMemoryStore();
const files = openDiskFiles({ folder });
let app: App;
let task: string;
let illustratedTask: string;

beforeAll(async () => {
  app = await buildApp({ store, files, client: clientOf(), web: true });
  await app.listen({ host: "127.0.0.1", port: 0 });
  task = `/tasks/${(await addFinishedTask({ store, files }, Buffer.from("film"))).id}`;
  illustratedTask = await addIllustrated(store, illustrated(pageUrl, `${pageUrl}.png`));
});
afterAll(async () => {
  await app.close();
});

/** Sends a request over a connection of its own. */
async function send(
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: string }> {
  const { port } = app.server.address() as AddressInfo;
  const call = request({ port, path, method, headers: { ...headers, connection: "close" } }).end();
  const [response] = await once(call, "response");
  const chunks: Buffer[] = await response.toArray();
  const body = Buffer.concat(chunks).toString("latin1");
  return { status: response.statusCode, headers: response.headers, body };
}

/** Returns the header fields that tell of a content. */
function contentFields(headers: IncomingHttpHeaders): string[] {
  return Object.keys(headers).filter((name) => /^(content-(type|length|encoding)|transfer-encoding)$/.test(name));
}

describe("a 304 response", () => {
  it.each([
    ["a task", () => task],
    ["a file", () => `${task}/file`],
    ["a thumbnail", () => `${illustratedTask}/thumbnail`],
    ["the page", () => "/"],
  ])("for %s says nothing of a content, and what the 200 says for caches", async (_, pathOf) => {
    const whole = await send("GET", pathOf());
    expect(whole.status).toBe(200);
    const { etag = "", vary, "cache-control": caching } = whole.headers;
    for (const method of ["GET", "HEAD"]) {
      const again = await send(method, pathOf(), { "if-none-match": etag });
      expect([again.status, again.body]).toEqual([304, ""]);
      expect(contentFields(again.headers)).toEqual([]);
      expect(again.headers.etag).toBe(etag);
      expect([again.headers.vary, again.headers["cache-control"]]).toEqual([vary, caching]);
    }
  });
});

describe("a 204 response", () => {
  it.each([
    ["DELETE", () => "/session"],
    ["DELETE", () => task],
    ["OPTIONS", () => "/tasks/"],
  ])("to %s says nothing of a content", async (method, pathOf) => {
    const { status, headers, body } = await send(method, pathOf());
    expect([status, body]).toEqual([204, ""]);
    expect(contentFields(headers)).toEqual([]);
  });
});
