import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import * as fc from "fast-check";
import { ServiceError } from "../../src/model/errors.ts";
import type { HttpResponse, HttpClient } from "../../src/net/client.ts";
import { PageInfo } from "../../src/model/page-info.ts";
import { createPageResolver } from "../resolvers/page/local-reader.ts";
import { pages } from "./page-html.ts";
import { render, junk } from "./input-plan.ts";
import { defineTarget } from "./target.ts";

const schema = TypeCompiler.Compile(PageInfo);

const encoding = fc.constantFrom<BufferEncoding>("utf8", "utf8", "utf8", "latin1", "utf16le");
const contentType = fc.oneof(
  fc.constantFrom(
    "text/html; charset=utf-8",
    "text/html",
    'text/html;charset="Shift_JIS"',
    "text/html; charset=replacement",
    "application/xhtml+xml; charset=utf-16le",
    "text/plain",
    "application/octet-stream",
    "application/vnd.apple.mpegurl",
    "application/dash+xml",
    "video/mp4",
    "",
  ),
  junk,
);
const page = fc.record({
  html: pages,
  encoding,
  contentType: fc.option(contentType),
  bytes: fc.uint8Array({ maxLength: 8 }),
  chunkBytes: fc.constantFrom(1, 7, 1_000, 16_384, 65_536),
  path: fc.constantFrom("/watch/1", "/v/1.mp4", "/main.m3u8", "/main.mpd", "/a.html?b=1#c", "/%zz"),
});

const linked = fc.oneof(
  fc.constantFrom(
    '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\na.m3u8\n#EXT-X-MEDIA:TYPE=SUBTITLES,LANGUAGE="en",URI="s.m3u8"',
    '<MPD mediaPresentationDuration="PT9S"><Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="9"/></AdaptationSet></Period></MPD>',
    '{"type":"video","title":"T","html":"<iframe src=//e.example/1></iframe>","duration":5}',
    "<oembed><type>video</type><title>T</title></oembed>",
  ),
  junk,
);

interface Prepared {
  url: URL;
  contentType: string | null;
  chunks: Uint8Array[];
  linked: string | null;
}

/** Any bytes as the page: a record that matches its schema, or a ServiceError. */
export const pageTarget = defineTarget({
  name: "page",
  input: fc.tuple(page, fc.option(linked)),
  prepare: ([{ html, bytes, path, ...rest }, link]): Prepared => ({
    url: new URL(path, "https://video.example.com"),
    contentType: rest.contentType,
    chunks: cut(Buffer.concat([Buffer.from(render(html), rest.encoding), bytes]), rest.chunkBytes),
    linked: link,
  }),
  run: async (prepared) => {
    const resolver = createPageResolver({ client: fakeClient(prepared), pageMaxBytes: 8 << 20 });
    return resolver.resolve(prepared.url, { signal: AbortSignal.timeout(60_000) });
  },
  // The service reads pages in a process of their own.
  stallFactor: 5,
  check: (outcome) => {
    if ("error" in outcome) {
      if (outcome.error instanceof ServiceError && outcome.error.code !== "internal") return;
      throw outcome.error;
    }
    const info = outcome.value;
    assert.deepEqual(schema.Errors(info).First(), undefined);
    JSON.stringify(info);
    assert.equal(new Set(info.formats.map((format) => format.format_id)).size, info.formats.length);
    for (const text of [info.title, info.description, info.uploader, info.site_name]) {
      assert.ok(text !== "" && (text?.length ?? 0) <= 10_000, "texts are limited, and null if unknown");
    }
    const links = [...info.formats, ...info.thumbnails, ...Object.values(info.subtitles).flat()];
    const urls = [...links, ...(info.embed === null ? [] : [info.embed])].map(({ url }) => url);
    for (const url of [info.webpage_url, info.uploader_url ?? info.url, ...urls]) {
      assert.match(url, /^https?:/);
    }
    assert.ok(info.tags.every((tag) => tag !== ""));
    const filled = new Set(Object.entries(info).flatMap(([name, value]) => (isFilled(value) ? [name] : [])));
    for (const field of Object.keys(info.sources)) assert.ok(filled.has(field), `no ${field}`);
  },
});

function isFilled(value: unknown): boolean {
  return typeof value === "object" ? Object.keys(value ?? {}).length > 0 : true;
}

/** Cuts into chunks; after 400, larger ones. */
function cut(bytes: Uint8Array, chunkBytes: number): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = chunks.length < 400 ? chunkBytes : 65_536;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

/** Creates a client that responds like a network: each chunk in its own event loop iteration. */
function fakeClient({ url: pageUrl, contentType: type, chunks, linked: link }: Prepared): HttpClient {
  async function* body(parts: readonly Uint8Array[]) {
    for (const part of parts) {
      await setImmediate();
      yield part;
    }
  }
  return {
    async get(url): Promise<HttpResponse> {
      const isPage = url.href === pageUrl.href;
      if (!isPage && link === null) {
        throw new ServiceError("upstream_status", `${url.href} failed with status 404`);
      }
      const headers = new Map<string, string>();
      if (isPage && type !== null) headers.set("content-type", type);
      const parts = isPage ? chunks : [Buffer.from(link ?? "")];
      return { url, status: 200, headers, body: body(parts), release() {} };
    },
    async close() {},
  };
}
