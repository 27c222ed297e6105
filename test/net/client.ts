import { onTestFinished } from "vitest";
import type { GetOptions, HttpResponse, HttpClient } from "../../src/net/client.ts";
import { createHttpClient, type HttpClientOptions } from "../../src/net/http/http-client.ts";

export const MiB = 1024 * 1024;

/**
 * Creates a client that may fetch from 127.0.0.1, closed after the test. Its timeouts are longer than
 * a test may take, so that they hide no endless wait.
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

export async function bodyOf(response: HttpResponse): Promise<string> {
  return Buffer.concat(await Array.fromAsync(response.body)).toString();
}

/** Returns the body of `url`. */
export async function read(client: HttpClient, url: URL, options: Partial<GetOptions> = {}) {
  return bodyOf(await get(client, url, options));
}
