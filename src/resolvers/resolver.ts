import type { Static, TObject } from "@sinclair/typebox";

/**
 * Contract of a resolver: it tells what is on a page.
 *
 * `resolve(url, { signal })` promises a value that matches `output`; `GET /info` and the OpenAPI
 * document take that schema from here. `url` is absolute, http or https, without credentials.
 * Calls are independent and may run concurrently. Nothing is cached here.
 *
 * It rejects with a `ServiceError` (`address_blocked`, `upstream_*`); when `signal` is aborted it
 * stops all its work and rejects with `signal.reason`. A page without a medium is not an error.
 */
export interface Resolver<Output extends TObject = TObject> {
  /** Registry key, also `PageInfo.resolver`. */
  readonly name: string;
  readonly output: Output;
  resolve(url: URL, context: ResolveContext): Promise<Static<Output>>;
  /** Frees sockets; safe to call twice. */
  close(): Promise<void>;
}

export interface ResolveContext {
  signal: AbortSignal;
}
