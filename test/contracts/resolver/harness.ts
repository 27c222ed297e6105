import type { RequestListener } from "node:http";
import { onTestFinished } from "vitest";
import type { Resolver } from "../../../src/resolvers/resolver.ts";
import { startUpstream } from "../../net/upstream.ts";

interface ResolverOptions {
  /** The networks that may be fetched although they are not public; "": none. */
  allowNetworks: readonly string[];
  idleTimeoutMs: number;
}

export type OpenResolver = (options: ResolverOptions) => Resolver | Promise<Resolver>;

const video = `<!doctype html><title>Otters</title><meta property="og:type" content="video.other">
<meta property="og:video" content="/otters.mp4"><meta property="og:image" content="/otters.jpg">`;
/** A text that no error message may repeat. */
export const bodyText = "what-only-the-body-says";

/**
 * Starts a site on 127.0.0.1 and opens a resolver for one test. Unless `options` say otherwise, it may
 * fetch from 127.0.0.1 alone and waits at most 60 s for the next byte.
 */
export async function start(
  open: OpenResolver,
  options: Partial<ResolverOptions> = {},
  listener: RequestListener = respond,
) {
  const requests: string[] = [];
  const waiting = new Map<string, () => void>();
  const upstream = await startUpstream((request, response) => {
    const path = request.url ?? "";
    requests.push(path);
    listener(request, response);
    waiting.get(path)?.();
  });
  const resolver = await open({ allowNetworks: ["127.0.0.1/32"], idleTimeoutMs: 60_000, ...options });
  onTestFinished(() => resolver.close());
  async function whenRequested(path: string): Promise<void> {
    const { promise, resolve: onRequest } = Promise.withResolvers<void>();
    waiting.set(path, onRequest);
    if (!requests.includes(path)) await promise;
  }
  return { resolver, upstream, requests, whenRequested, url: (path: string) => upstream.url(path) };
}

/** Resolves without an abort. */
export function resolve(resolver: Resolver, url: URL) {
  return resolver.resolve(url, { signal: new AbortController().signal });
}

const respond: RequestListener = ({ url = "" }, response) => {
  const path = url.split("?", 1)[0];
  response.setHeader("content-type", "text/html; charset=utf-8");
  if (path === "/404" || path === "/503") response.statusCode = Number(path.slice(1));
  if (path === "/silent") return;
  if (path === "/stalled") {
    response.write(video);
  } else if (path === "/cut") {
    response.setHeader("content-length", 1_000_000).write(bodyText);
    setImmediate(() => response.destroy());
  } else if (path === "/image") {
    response.setHeader("content-type", "image/png").end(bodyText);
  } else if (path === "/moved" || path === "/loop" || path === "/inward") {
    const location = path === "/moved" ? "/video" : path === "/loop" ? "/loop" : "http://10.0.0.1/";
    response.writeHead(302, { location }).end(bodyText);
  } else if (path === "/leads-to-silence") {
    response.end(`<link rel="alternate" type="application/json+oembed" href="/silent">`);
  } else {
    response.end(path === "/video" || path === "/otters.mp4" ? video : `<p>${bodyText}`);
  }
};
