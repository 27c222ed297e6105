import type { HttpClient } from "../client.ts";
import { createCookieJar } from "../cookies.ts";

/** Returns a client whose requests also send the cookies that the responses of earlier ones have set, where they apply. Closing it closes `client`. */
export function withCookies(client: HttpClient): HttpClient {
  const cookies = createCookieJar();
  return { get: (url, options) => client.get(url, { cookies, ...options }), close: () => client.close() };
}
