import type { Static, TObject } from "@sinclair/typebox";
import type { SiteVideo } from "../model/entry.ts";

/**
 * Contract of a resolver: it reads what is on a page. It can be implemented from this text alone; the
 * suite in `test/contracts/resolver.ts` holds every implementation to it.
 *
 * - **Output.** `resolve` returns a value that matches `output` and is plain JSON. Its `url` is
 *   `url.href` as asked, also after redirects; its `resolver` is `name`, or that of the resolver that this
 *   one has asked. The value belongs to the caller, who may change it. A page without a medium is not an
 *   error.
 * - **Requests.** Every request goes through the guarded client (`net/client.ts`) or, of another program,
 *   through the guarded proxy, those that the page leads to as well.
 * - **Independence.** Calls may run concurrently; the failure or the abort of one affects no other.
 *   Nothing is cached: each call reads the page again.
 * - **Errors.** `ServiceError` with the client's codes (`address_blocked`, `upstream_unreachable`,
 *   `upstream_status`, `upstream_timeout`, `upstream_invalid`), `upstream_invalid` also for a response
 *   that is not a page or medium; of a resolver that knows sites also `login_required`, `geo_restricted`,
 *   `drm_protected`, `live_stream`. Messages contain nothing of a response's body. Any other error is a bug.
 * - **Abort.** When `signal` is aborted, requests and connections of the call end and it rejects with
 *   `signal.reason`, within a second. With a signal that is aborted already it requests nothing. No
 *   listener stays on `signal` after the call.
 */
export interface Resolver<Output extends TObject = TObject> {
  /** Registry key. */
  readonly name: string;
  /** Schema of what `resolve` returns; `GET /info` and the OpenAPI document use it. */
  readonly output: Output;
  /** What the kernel does not forbid processes of another program, a sentence each; default nothing. */
  readonly unenforced?: readonly string[];
  /**
   * Reads the page at `url`: absolute, http or https, without credentials. Changes neither `url` nor
   * `context`.
   */
  resolve(url: URL, context: ResolveContext): Promise<Static<Output>>;
  /**
   * Returns which video the URL leads to, without a request; undefined if the URL does not show it. Default: no URL does.
   * Owners take turns.
   *
   * @throws ServiceError if it cannot be found out; `signal.reason`
   */
  identify?(url: URL, signal: AbortSignal, owner?: string): Promise<SiteVideo | undefined>;
  /**
   * Closes all connections; safe to call twice. Calls that still need the network then reject with
   * `unavailable`, later ones too.
   */
  close(): Promise<void>;
}

export interface ResolveContext {
  signal: AbortSignal;
  /** For whom: what is limited at a time is shared by owners; default one for all. */
  owner?: string | undefined;
  /**
   * The formats may be `DownloadFormat`s: the caller downloads, and neither stores nor shows what goes
   * beyond `output`. Without it they match `output` exactly.
   */
  forDownload?: boolean;
  /** The caller limits the height, so that of each format is wanted, if it can be learned; default false. */
  needsHeights?: boolean;
  /** The caller prefers codecs, so that of each video is wanted, if it can be learned; default false. */
  needsCodecs?: boolean;
  /** A file of chapters (WebVTT, JSON of podcasts) that a playlist names: they count if the page states none. Default: it names none. */
  chaptersUrl?: URL | undefined;
  /** The page that leads to `url`, which is sent as `Referer` as a browser does. Default: none. */
  referrer?: URL | undefined;
  /** Called when the call begins to wait for the turn of its host, and when it no longer does. Default: none. */
  onWaiting?: ((isWaiting: boolean) => Promise<void>) | undefined;
  /**
   * When the caller will abort `signal`, on the clock of `performance.now()`; default never. A resolver that has a
   * record by then ends what it could still learn in time to return it.
   */
  deadlineMs?: number;
  /**
   * The `entries_next` of an earlier record of this page: the entries after those are wanted; default the first ones. With
   * one that it has not made, a resolver of pages with entries throws `invalid_request`.
   */
  entriesCursor?: string | undefined;
}
