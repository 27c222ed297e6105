import { onTestFinished } from "vitest";
import type { GetOptions, HttpResponse, HttpClient } from "../../src/net/client.ts";
import { createHttpClient, type HttpClientOptions } from "../../src/net/http-client.ts";

export const MiB = 1024 * 1024;

/**
 * A client that may fetch from 127.0.0.1, for the length of the test. Its time limits are longer
 * than a test may take, so that none of them hides a wait without end.
 */
export function localClient(options: HttpClientOptions = {}): HttpClient {
  const client = createHttpClient({
    allowNetworks: ["127.0.0.0/8"],
    idleTimeoutMs: 90_000,
    totalTimeoutMs: 90_000,
    ...options,
  });
  onTestFinished(() => client.close());
  return client;
}

export function get(client: HttpClient, url: URL, options: Partial<GetOptions> = {}) {
  return client.get(url, { signal: new AbortController().signal, maxBytes: MiB, ...options });
}

export async function bodyOf(answer: HttpResponse): Promise<string> {
  return Buffer.concat(await Array.fromAsync(answer.body)).toString();
}

/** The body of `url`, read to its end. */
export async function read(client: HttpClient, url: URL, options: Partial<GetOptions> = {}) {
  return bodyOf(await get(client, url, options));
}
