import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { Readable, Transform } from "node:stream";
import { text } from "node:stream/consumers";
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { HttpResponse } from "../../src/net/client.ts";
import { decode } from "../../src/net/http/content-coding.ts";
import { bodyOf, get, localClient, MiB, read } from "./client.ts";
import { startUpstream } from "./upstream.ts";

const page = `<title>Ünreel</title>${"a long page ".repeat(20_000)}`;
const fastBrotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const fastGzip = (bytes: Buffer) => gzipSync(bytes, { level: 1 });

const encodings: [name: string, field: string, encode: (bytes: Buffer) => Buffer][] = [
  ["gzip", "gzip", fastGzip],
  ["x-gzip", "X-GZIP", fastGzip],
  ["deflate", "deflate", (bytes) => deflateSync(bytes, { level: 1 })],
  ["bare deflate", "deflate", (bytes) => deflateRawSync(bytes, { level: 1 })],
  ["br", "br", (bytes) => brotliCompressSync(bytes, fastBrotli)],
  ["zstd", "zstd", zstdCompressSync],
  ["gzip in gzip", "gzip, gzip", (bytes) => fastGzip(fastGzip(bytes))],
  ["br in zstd", "identity, br,, zstd", (bytes) => zstdCompressSync(brotliCompressSync(bytes, fastBrotli))],
];

const serve = (field: string, send: Buffer | ((response: ServerResponse) => void)) =>
  startUpstream((_request, response) => {
    response.setHeader("content-encoding", field);
    if (typeof send === "function") send(response);
    else response.end(send);
  });

describe.each(encodings)("a body in %s", (_name, field, encode) => {
  it("is decoded", async () => {
    const upstream = await serve(field, encode(Buffer.from(page)));
    expect(await read(localClient(), upstream.url("/"))).toBe(page);
  });

  it("is decoded when it is received byte by byte", async () => {
    const upstream = await serve(field, (response) => {
      for (const byte of encode(Buffer.from("a short page"))) response.write(Buffer.of(byte));
      response.end();
    });
    expect(await read(localClient(), upstream.url("/"))).toBe("a short page");
  });

  it("may be as large as the limit; one byte more is an error", async () => {
    const bytes = randomBytes(100_000);
    const upstream = await serve(field, encode(bytes));
    const client = localClient();
    const response = await get(client, upstream.url("/"), { maxBytes: bytes.length });
    expect(Buffer.concat(await Array.fromAsync(response.body)).equals(bytes)).toBe(true);
    await expect(read(client, upstream.url("/"), { maxBytes: bytes.length - 1 })).rejects.toMatchObject({
      code: "upstream_invalid",
      message: `GET ${upstream.url("/").href}: the response is larger than the limit of 99999 bytes`,
    });
  });

  it("is cut off when it is truncated in a complete response: a retry may help", async () => {
    const upstream = await serve(field, encode(Buffer.from(page)).subarray(0, -5));
    await expect(read(localClient(), upstream.url("/"))).rejects.toMatchObject({
      code: "upstream_unreachable",
      message: `GET ${upstream.url("/").href}: the response is cut off within its content coding`,
      retryable: true,
    });
  });

  it("is unreachable when the connection is cut", async () => {
    const upstream = await serve(field, (response) => {
      response.write(encode(Buffer.from(page)).subarray(0, -5), () => response.destroy());
    });
    await expect(read(localClient(), upstream.url("/"))).rejects.toMatchObject({
      code: "upstream_unreachable",
    });
  });

  it("is invalid when it has another format", async () => {
    const upstream = await serve(field, Buffer.from(page));
    await expect(read(localClient(), upstream.url("/"))).rejects.toMatchObject({
      code: "upstream_invalid",
    });
  });

  it("stops at the limit when it is a bomb, with little memory", async () => {
    const bomb = encode(Buffer.alloc(160 * MiB));
    const upstream = await serve(field, bomb);
    const response = await get(localClient(), upstream.url("/"), { maxBytes: 8 * MiB });
    const before = process.memoryUsage.rss();
    const { bytes, peak, error } = await drain(response);
    expect(error).toMatchObject({ code: "upstream_invalid" });
    expect(bytes).toBeLessThanOrEqual(8 * MiB);
    expect(peak - before).toBeLessThan(128 * MiB);
  });
});

/** Reads to the end or the error, slowly enough for a decoder without backpressure to run ahead. */
async function drain({ body }: HttpResponse) {
  let bytes = 0;
  let peak = 0;
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      peak = Math.max(peak, process.memoryUsage.rss());
      await new Promise(setImmediate);
    }
    return { bytes, peak, error: undefined };
  } catch (error) {
    return { bytes, peak, error };
  }
}

it("stops at the limit when an inner layer is a bomb, even if it decodes to nothing", async () => {
  // Many empty gzip members, which decode to nothing.
  const hollow = Buffer.concat(Array.from({ length: 500_000 }, () => emptyMember));
  const upstream = await serve("gzip, gzip", gzipSync(hollow));
  await expect(read(localClient(), upstream.url("/"))).rejects.toMatchObject({
    code: "upstream_invalid",
    message: expect.stringContaining("is larger than 2098176 bytes before decoding"),
  });
});
const emptyMember = gzipSync("");

it.each([
  ["compress", `the response's content coding must be one of gzip, deflate, br, zstd, not "compress"`],
  ["gzip, dcz", `the response's content coding must be one of gzip, deflate, br, zstd, not "dcz"`],
  ["gzip, gzip, gzip", "the response has 3 content codings, the limit is 2"],
  [",br".repeat(99), "the response has 99 content codings, the limit is 2"],
])("refuses Content-Encoding: %s", async (field, message) => {
  const upstream = await serve(field, Buffer.from("page"));
  await expect(get(localClient(), upstream.url("/"))).rejects.toMatchObject({
    code: "upstream_invalid",
    message: `GET ${upstream.url("/").href}: ${message}`,
  });
});

it.each(["identity", "UTF-8", "aws-chunked", "utf-8, identity", "none, binary"])(
  "takes a body as it is, and as one without coding, whose Content-Encoding, %s, names none",
  async (field) => {
    const upstream = await serve(field, Buffer.from(page));
    const response = await get(localClient(), upstream.url("/"));
    expect(Buffer.concat(await Array.fromAsync(response.body)).toString()).toBe(page);
    expect(response.headers.has("content-encoding")).toBe(false);
  },
);

it("hands a decoder the chunks that wait as one", async () => {
  const body = new Readable({ read() {} });
  for (const letter of "otters".repeat(1_000)) body.push(letter);
  body.push(null);
  let writes = 0;
  const counting = new Transform({
    transform(chunk, _encoding, done) {
      writes += 1;
      done(null, chunk);
    },
  });
  const { decoded } = decode(body, [() => counting], MiB, "GET a page");
  expect(await text(decoded)).toBe("otters".repeat(1_000));
  expect(writes).toBeLessThan(10);
});

it("reads an empty body as empty, whatever its coding", async () => {
  const upstream = await serve("gzip", (response) => response.setHeader("content-length", 0).end());
  expect(await read(localClient(), upstream.url("/"))).toBe("");
  const unmeasured = await serve("deflate", (response) => {
    response.flushHeaders();
    response.end();
  });
  expect(await read(localClient(), unmeasured.url("/"))).toBe("");
});

it("refuses a zstd window that is larger than the coding allows", async () => {
  const bytes = Buffer.concat(Array(20).fill(randomBytes(MiB)));
  const fetchWithWindow = async (windowLog: number) => {
    const params = {
      [constants.ZSTD_c_windowLog]: windowLog,
      [constants.ZSTD_c_enableLongDistanceMatching]: 1,
    };
    const upstream = await serve("zstd", zstdCompressSync(bytes, { params }));
    const { body } = await get(localClient(), upstream.url("/"), { maxBytes: 64 * MiB });
    return Buffer.concat(await Array.fromAsync(body));
  };
  expect((await fetchWithWindow(23)).equals(bytes)).toBe(true);
  await expect(fetchWithWindow(27)).rejects.toMatchObject({
    code: "upstream_invalid",
    message: expect.stringContaining("damaged"),
  });
});

it.each([
  ["br", "br", (bytes: Buffer) => brotliCompressSync(bytes, fastBrotli)],
  ["br in gzip", "br, gzip", (bytes: Buffer) => gzipSync(brotliCompressSync(bytes, fastBrotli))],
  ["gzip in zstd", "gzip, zstd", (bytes: Buffer) => zstdCompressSync(gzipSync(bytes))],
])("decodes four bodies in %s at a time, as each may take 4 MiB before it is read", async (_, field, encode) => {
  // More than is decoded ahead of its reader.
  const long = page.repeat(4);
  const upstream = await startUpstream(({ url = "" }, response) => {
    if (url !== "/plain") response.setHeader("content-encoding", field);
    response.end(url === "/plain" ? page : encode(Buffer.from(long)));
  });
  const client = localClient({ perHost: 100 });
  const first = await Promise.all([1, 2, 3, 4].map((n) => get(client, upstream.url(`/${n}`), { owner: "anna" })));
  let isOpen = false;
  const next = get(client, upstream.url("/5"), { owner: "anna" }).finally(() => (isOpen = true));
  expect(await read(client, upstream.url("/6"), { owner: "ben" })).toBe(long);
  expect(await read(client, upstream.url("/plain"), { owner: "anna" })).toBe(page);
  expect(isOpen).toBe(false);
  expect(await bodyOf(first[0]!)).toBe(long);
  expect(await bodyOf(await next)).toBe(long);
  const left = get(client, upstream.url("/7"), { owner: "anna" });
  await first[1]!.body[Symbol.asyncIterator]().return?.();
  expect(await bodyOf(await left)).toBe(long);
});

it("refuses a window of Brotli that is larger than encoders take for a page", async () => {
  const fetchWithWindow = async (lgwin: number) => {
    const params = { ...fastBrotli.params, [constants.BROTLI_PARAM_LGWIN]: lgwin };
    const upstream = await serve("br", brotliCompressSync(Buffer.from(page), { params }));
    return read(localClient(), upstream.url("/"));
  };
  for (let lgwin = 10; lgwin <= 22; lgwin += 1) expect(await fetchWithWindow(lgwin)).toBe(page);
  for (const lgwin of [23, 24]) {
    await expect(fetchWithWindow(lgwin)).rejects.toMatchObject({
      code: "upstream_invalid",
      message: expect.stringContaining("the response's window of Brotli is over 4 MiB, which is not decoded"),
    });
  }
});
