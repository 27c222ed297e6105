import { ServiceError } from "../../../src/errors.ts";
import type { HttpClient } from "../../../src/net/client.ts";
import type { PageInfo } from "../../../src/page-info.ts";
import { createPageResolver } from "../../../src/resolvers/page.ts";

export interface SavedAnswer {
  type?: string | null;
  body: string | Uint8Array | (() => AsyncIterable<Uint8Array>);
  headers?: Record<string, string>;
  /** Address after redirects. */
  url?: string;
}

export interface SavedClient extends HttpClient {
  /** Addresses asked for, in order. */
  readonly asked: string[];
}

/** Answers from memory; anything else cannot be reached, unless `answers` holds an error for it. */
export function createSavedClient(answers: Record<string, SavedAnswer | Error>): SavedClient {
  const asked: string[] = [];
  return {
    asked,
    async get(url, { signal }) {
      signal.throwIfAborted();
      asked.push(url.href);
      const answer =
        answers[url.href] ?? new ServiceError("upstream_unreachable", `nothing at ${url.href}`);
      if (answer instanceof Error) throw answer;
      const headers = new Map(Object.entries(answer.headers ?? {}));
      if (answer.type !== null)
        headers.set("content-type", answer.type ?? "text/html; charset=utf-8");
      const body = typeof answer.body === "function" ? answer.body() : once(answer.body);
      return { url: new URL(answer.url ?? url), status: 200, headers, body, release() {} };
    },
    close: async () => {},
  };
}

export const pageUrl = "https://video.example.com/watch/1";
export const fixedNow = () => new Date("2024-05-06T07:08:09.000Z");

/** What the resolver tells of `html` at `pageUrl`, with the other answers at hand. */
export function resolvePage(
  html: string,
  others: Record<string, SavedAnswer | Error> = {},
): Promise<PageInfo> {
  return resolveFrom({ [pageUrl]: { body: html }, ...others });
}

export function resolveFrom(
  answers: Record<string, SavedAnswer | Error>,
  url = pageUrl,
): Promise<PageInfo> {
  const client = createSavedClient(answers);
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
