import { createHash, randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { get, localClient, MiB } from "./client.ts";
import { startUpstream } from "./upstream.ts";

const bytes = randomBytes(48 * MiB);
const sha256 = createHash("sha256").update(bytes).digest("hex");

it("reads a long body into the same few blocks if its reader releases each chunk", async () => {
  const { url } = await startUpstream((_request, response) => response.end(bytes));
  const response = await get(localClient(), url("/"), { maxBytes: bytes.length });
  const hash = createHash("sha256");
  const blocks = new Set<ArrayBufferLike>();
  for await (const chunk of response.body) {
    hash.update(chunk);
    if (chunk.length >= 64 * 1024) blocks.add(chunk.buffer);
    response.release(chunk);
  }
  expect(hash.digest("hex")).toBe(sha256);
  expect(blocks.size).toBeGreaterThan(0);
  expect(blocks.size).toBeLessThan(16);
});

it("reads the bodies of many responses into the same few blocks, though each begins with headers", async () => {
  const { url } = await startUpstream((_request, response) => response.end(bytes.subarray(0, 128 * 1024)));
  const client = localClient();
  const blocks = new Set<ArrayBufferLike>();
  for (let count = 0; count < 64; count++) {
    const response = await get(client, url("/"));
    for await (const chunk of response.body) {
      if (chunk.length >= 64 * 1024) blocks.add(chunk.buffer);
      response.release(chunk);
    }
  }
  expect(blocks.size).toBeGreaterThan(0);
  expect(blocks.size).toBeLessThan(16);
});

it("does not reuse the chunks that a reader keeps while other readers release theirs", async () => {
  const { url } = await startUpstream((_request, response) => response.end(bytes));
  const client = localClient();
  const options = { maxBytes: bytes.length };
  const [kept, released] = await Promise.all([get(client, url("/1"), options), get(client, url("/2"), options)]);
  const releaseAll = async () => {
    for await (const chunk of released.body) released.release(chunk);
  };
  const [chunks] = await Promise.all([Array.fromAsync(kept.body), releaseAll()]);
  expect(createHash("sha256").update(Buffer.concat(chunks)).digest("hex")).toBe(sha256);
});

it("does not reuse a chunk of which the last part is not released, and no chunk twice", async () => {
  const { url } = await startUpstream((_request, response) => response.end(bytes));
  const response = await get(localClient(), url("/"), { maxBytes: bytes.length });
  const kept: Uint8Array[] = [];
  let copies: Buffer[] = [];
  for await (const chunk of response.body) {
    const isKept = kept.length < 8;
    if (isKept) kept.push(chunk);
    if (isKept) copies = [...copies, Buffer.from(chunk)];
    response.release(isKept ? chunk.subarray(0, -1) : chunk);
    if (!isKept) response.release(chunk);
  }
  expect(Buffer.concat(kept).equals(Buffer.concat(copies))).toBe(true);
});

it("ignores the release of decoded chunks", async () => {
  const { url } = await startUpstream((_request, response) => {
    response.setHeader("content-encoding", "gzip").end(gzipSync(bytes.subarray(0, MiB)));
  });
  const response = await get(localClient(), url("/"), { maxBytes: MiB });
  const hash = createHash("sha256");
  for await (const chunk of response.body) {
    hash.update(chunk);
    response.release(chunk);
  }
  const expected = createHash("sha256").update(bytes.subarray(0, MiB)).digest("hex");
  expect(hash.digest("hex")).toBe(expected);
});
