import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { bodyOf, get, localClient, read } from "./client.ts";
import { startUpstream } from "./upstream.ts";

const media = "0123456789";

/** Answers with its own request header, or with the status and header that the query states. */
const startAnswering = () =>
  startUpstream(({ url = "", headers }, response) => {
    const { searchParams } = new URL(url, "http://any");
    const { status = 200, ...fields } = JSON.parse(searchParams.get("answer") ?? "{}");
    response.writeHead(status, fields);
    response.end(fields["content-encoding"] === "gzip" ? gzipSync(media) : JSON.stringify(headers));
  });

const answering = (answer: object) => `/?answer=${encodeURIComponent(JSON.stringify(answer))}`;

it.each([
  [{ offset: 0, length: 1 }, "bytes=0-0"],
  [{ offset: 500, length: 500 }, "bytes=500-999"],
  [{ offset: 7 }, "bytes=7-"],
])("asks for %j as %s, without a content coding, with the validator", async (range, field) => {
  const upstream = await startAnswering();
  const options = { range, ifRange: '"v1"' };
  expect(JSON.parse(await read(localClient(), upstream.url("/"), options))).toMatchObject({
    range: field,
    "if-range": '"v1"',
    "accept-encoding": "identity",
  });
});

it.each([{ offset: -1 }, { offset: 0.5 }, { offset: 3, length: 0 }, { offset: 2 ** 53, length: 1 }])(
  "refuses to ask for %j",
  async (range) => {
    const upstream = await startAnswering();
    await expect(get(localClient(), upstream.url("/"), { range })).rejects.toMatchObject({
      code: "upstream_invalid",
      message: expect.stringContaining("a byte range must have an offset of 0 or more"),
    });
    expect(upstream.sockets).toEqual([]);
  },
);

it("takes Range and If-Range along on every redirect", async () => {
  const upstream = await startUpstream(({ url, headers }, response) => {
    const next = { "/": "/1", "/1": "/2" }[url ?? ""];
    if (next === undefined) response.end(JSON.stringify([headers.range, headers["if-range"]]));
    else response.writeHead(302, { location: next }).end();
  });
  const options = { range: { offset: 3 }, ifRange: '"v1"' };
  expect(await read(localClient(), upstream.url("/"), options)).toBe('["bytes=3-","\\"v1\\""]');
});

it("keeps the status of an error behind a redirect", async () => {
  const upstream = await startUpstream(({ url }, response) => {
    response.writeHead(url === "/" ? 302 : 416, { location: "/1" }).end();
  });
  const range = { offset: 3 };
  await expect(get(localClient(), upstream.url("/"), { range })).rejects.toMatchObject({
    code: "upstream_status",
    upstreamStatus: 416,
  });
});

it.each("bytes 2-5/10|bytes 2-4/10|bytes 2-6/10|bytes 2-5/*|BYTES 2-2/3|bytes=2-5/10|bytes: 2-5/10|2-5/10".split("|"))(
  "takes a 206 of %j for bytes 2 to 5",
  async (sent) => {
    const upstream = await startAnswering();
    const url = upstream.url(answering({ status: 206, "content-range": sent }));
    const range = { offset: 2, length: 4 };
    expect(await get(localClient(), url, { range })).toMatchObject({ status: 206 });
  },
);

it.each([
  ["that begins earlier", { "content-range": "bytes 0-5/10" }],
  ["that begins later", { "content-range": "bytes 3-5/10" }],
  ["that ends before it begins", { "content-range": "bytes 2-1/10" }],
  ["that ends behind the resource", { "content-range": "bytes 2-5/5" }],
  ["in another unit", { "content-range": "items 2-5/10" }],
  ["of an endless number", { "content-range": `bytes 2-5/${"9".repeat(4_000)}` }],
  ["of several ranges", { "content-type": "multipart/byteranges; boundary=x" }],
  ["of no stated range", {}],
])("refuses a 206 %s", async (_what, fields) => {
  const upstream = await startAnswering();
  const url = upstream.url(answering({ status: 206, ...fields }));
  const failure = get(localClient(), url, { range: { offset: 2, length: 4 } });
  await expect(failure).rejects.toMatchObject({ code: "upstream_invalid", retryable: false });
});

describe("a 206 that does not say which range it is", () => {
  const answer = async (body: string, fields: Record<string, string> = {}) => {
    const upstream = await startUpstream((_request, response) => {
      response.writeHead(206, { "content-length": body.length, ...fields }).end(body);
    });
    return read(localClient(), upstream.url("/"), { range: { offset: 2, length: 4 } });
  };
  const refusal = { code: "upstream_invalid", message: expect.stringContaining("does not state a single range") };

  it("is taken if it has as many bytes as were requested", async () => {
    expect(await answer("cdef")).toBe("cdef");
  });

  it("is refused if it has others, or says so in a way that is not understood", async () => {
    await expect(answer("cde")).rejects.toMatchObject(refusal);
    await expect(answer("cdefg")).rejects.toMatchObject(refusal);
    await expect(answer("cdef", { "content-range": "4" })).rejects.toMatchObject(refusal);
    await expect(answer("cdef", { "content-type": "multipart/byteranges" })).rejects.toMatchObject(refusal);
  });
});

it.each(["bytes 0-8/10", "bytes 1-9/10", "bytes 0-9/*", ""])(
  "refuses a 206 of %j that nobody asked for",
  async (sent) => {
    const upstream = await startAnswering();
    const url = upstream.url(answering({ status: 206, "content-range": sent }));
    await expect(get(localClient(), url)).rejects.toThrow("the response is a range (206)");
  },
);

it.each(["bytes 0-8/10", "bytes 1-9/10", "bytes 4-9/*"])("refuses a 200 that states the part %j", async (sent) => {
  const upstream = await startAnswering();
  const url = upstream.url(answering({ "content-range": sent }));
  for (const range of [undefined, { offset: 4 }]) {
    await expect(get(localClient(), url, range && { range })).rejects.toMatchObject({
      code: "upstream_invalid",
      message: expect.stringContaining(`has status 200, as if it had everything, and states ${sent.split("/")[0]}`),
    });
  }
});

it.each(["bytes 0-9/10", "bytes 0-9/*", "bytes 0-10/10", "items 1-2/3"])("takes a 200 that states %j", async (sent) => {
  const upstream = await startAnswering();
  const url = upstream.url(answering({ "content-range": sent }));
  expect(await get(localClient(), url, { range: { offset: 4 } })).toMatchObject({ status: 200 });
});

it("takes a 206 of the whole resource that nobody asked for", async () => {
  const upstream = await startAnswering();
  const url = upstream.url(answering({ status: 206, "content-range": "bytes 0-9/10" }));
  expect(JSON.parse(await read(localClient(), url))).not.toHaveProperty("range");
});

it.each([{ identity: true }, { range: { offset: 0 } }])(
  "decodes a whole response that has a content coding against %j, without the fields of its coded form",
  async (options) => {
    const upstream = await startAnswering();
    const coded = upstream.url(answering({ "content-encoding": "gzip", etag: '"coded"' }));
    const response = await get(localClient(), coded, options);
    expect(await bodyOf(response)).toBe(media);
    for (const name of ["content-length", "etag"]) expect(response.headers.has(name)).toBe(false);
    const plain = await get(
      localClient(),
      upstream.url(answering({ "content-encoding": "identity", etag: '"e"' })),
      options,
    );
    expect(plain.headers.get("etag")).toBe('"e"');
    await bodyOf(plain);
  },
);

it("refuses a range of a response that has a content coding", async () => {
  const upstream = await startAnswering();
  const coded = { status: 206, "content-range": "bytes 0-9/10", "content-encoding": "gzip" };
  await expect(
    get(localClient(), upstream.url(answering(coded)), { range: { offset: 0, length: 10 } }),
  ).rejects.toMatchObject({
    code: "upstream_invalid",
    message: expect.stringContaining("has a content coding"),
  });
});

it("has no total time-out where that is Infinity", async () => {
  const upstream = await startUpstream((_request, response) => response.end(media));
  const client = localClient({ totalTimeoutMs: Number.POSITIVE_INFINITY });
  expect(await read(client, upstream.url("/"))).toBe(media);
});
