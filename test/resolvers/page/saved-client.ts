import { ServiceError } from "../../../src/model/errors.ts";
import type { HttpClient } from "../../../src/net/client.ts";
import type { PageInfo } from "../../../src/model/page-info.ts";
import { createPageResolver } from "./local-reader.ts";

export interface SavedResponse {
  type?: string | null;
  body: string | Uint8Array | ((signal: AbortSignal) => AsyncIterable<Uint8Array>);
  headers?: Record<string, string>;
  /** URL after redirects; default the requested one. */
  url?: string;
}

interface SavedClient extends HttpClient {
  /** The requested URLs, in order. */
  readonly requested: string[];
}

/** Creates a client that responds from memory, by URL; an Error rejects. Other URLs are unreachable. */
export function createSavedClient(responses: Record<string, SavedResponse | Error>): SavedClient {
  const requested: string[] = [];
  return {
    requested,
    async get(url, { signal }) {
      signal.throwIfAborted();
      requested.push(url.href);
      const response = responses[url.href] ?? new ServiceError("upstream_unreachable", `nothing at ${url.href}`);
      if (response instanceof Error) throw response;
      const headers = new Map(Object.entries(response.headers ?? {}));
      if (response.type !== null) headers.set("content-type", response.type ?? "text/html; charset=utf-8");
      const body = typeof response.body === "function" ? response.body(signal) : once(response.body);
      return { url: new URL(response.url ?? url), status: 200, headers, body, release() {} };
    },
    close: async () => {},
  };
}

export const pageUrl = "https://video.example.com/watch/1";
export const fixedNow = () => new Date("2024-05-06T07:08:09.000Z");

/** Resolves a page with this HTML at `pageUrl`; `others` are the further responses. */
export function resolvePage(html: string, others: Record<string, SavedResponse | Error> = {}): Promise<PageInfo> {
  return resolveFrom({ [pageUrl]: { body: html }, ...others });
}

export function resolveFrom(responses: Record<string, SavedResponse | Error>, url = pageUrl): Promise<PageInfo> {
  const client = createSavedClient(responses);
  const resolver = createPageResolver({ client, pageMaxBytes: 16 * 1024 * 1024, now: fixedNow });
  return resolver.resolve(new URL(url), { signal: new AbortController().signal });
}

export function jsonLd(...blocks: unknown[]): string {
  return blocks
    .map((block) => {
      const source = typeof block === "string" ? block : JSON.stringify(block);
      return `<script type="application/ld+json">${source}</script>`;
    })
    .join("\n");
}

async function* once(body: string | Uint8Array): AsyncGenerator<Uint8Array> {
  yield typeof body === "string" ? Buffer.from(body) : body;
}
