import type { Manifest } from "../../../manifests/manifest.ts";
import { decodeManifest } from "../../../manifests/text.ts";
import type { StatedChapter } from "../../../model/entry.ts";
import type { MediaList } from "../lists/feed.ts";
import type { Merged, PageMetadata } from "../merge.ts";
import type { Metadata } from "../metadata.ts";
import { type LinkedText, resolveLinks } from "../../../manifests/dash/links.ts";

/** What to read, by its kind; `url` is that of the response, after redirects. */
export interface ReadJobs {
  page: { kind: "page"; url: URL; contentType: string | null; now: Date; isPlayer: boolean };
  oembed: { kind: "oembed"; url: URL; contentType: string | null };
  m3u8: { kind: "m3u8"; url: URL };
  dash: { kind: "dash"; url: URL };
  chapters: { kind: "chapters"; url: URL };
  feed: { kind: "feed"; url: URL; start: number };
  m3u: { kind: "m3u"; url: URL; start: number };
  pls: { kind: "pls"; url: URL; start: number };
}

/** What is read of each kind; the formats of a manifest as `bestFormats` sorts and limits them. */
export interface ReadResults {
  page: PageDraft;
  oembed: Metadata;
  m3u8: Manifest;
  dash: Manifest;
  chapters: StatedChapter[];
  /** `null`: it lists nothing. */
  feed: MediaList | null;
  m3u: MediaList | null;
  pls: MediaList | null;
}

export type ReadKind = keyof ReadJobs;
export type ReadJob<K extends ReadKind = ReadKind> = ReadJobs[K] & { kind: K };

/** What a page itself states, and what it leads to. */
export interface PageDraft {
  merged: Merged;
  /** Its oEmbed response, and what to merge that with; null: it names none, or states all that one could. */
  oembed: { url: URL; metadata: PageMetadata } | null;
  /** A file of its chapters; null: it names none, or states them. */
  chapters: URL | null;
  /** URLs of the frames that may be players, the likeliest first. */
  frames: readonly URL[];
  /** Its media are trailers, by what its elements say, and it does not call itself one: they count only if no frame has a medium. */
  isTrailer: boolean;
  /** Where the browser is to go from it; null: nowhere. */
  refresh: URL | null;
}

export interface ReadContext {
  signal: AbortSignal;
  /** For whom; default one for all. */
  owner: string | undefined;
}

/** Reads what sites send: bytes in, a value out, no requests. */
export interface Reader {
  /** Makes it likely that the next `read` need not wait for a start. */
  prepare(): void;
  /**
   * Reads `body`, all bytes of a response.
   *
   * @throws ServiceError `upstream_invalid` if it is not what `job` says, or reading it takes more time or memory than
   * one body may; `unavailable` if the reader is closed or cannot read now; `signal.reason` when `signal` is aborted.
   */
  read<K extends ReadKind>(job: ReadJob<K>, body: readonly Uint8Array[], context: ReadContext): Promise<ReadResults[K]>;
  /** Safe to call twice. */
  close(): Promise<void>;
}

/** The body of a response, and its URL after redirects. */
interface Fetched {
  body: Uint8Array[];
  url: URL;
}

interface ManifestContext extends ReadContext {
  reader: Reader;
  /** Fetches what an MPD links to, at most `maxLinkedBytes`. */
  fetchLinked(url: URL): Promise<Fetched>;
}

/**
 * Returns what a manifest lists; of an MPD, after its links to remote elements are resolved.
 *
 * Rejects with the errors of `resolveLinks` and `reader`.
 */
export async function readManifest(
  kind: "m3u8" | "dash",
  manifest: Fetched,
  { reader, fetchLinked, ...context }: ManifestContext,
): Promise<Manifest> {
  const { body, url } = manifest;
  if (kind === "m3u8") return reader.read({ kind, url }, body, context);
  const text = await resolveLinks(textOf(manifest), async (link) => textOf(await fetchLinked(link)));
  return reader.read({ kind, url }, [Buffer.from(text)], context);
}

function textOf({ body, url }: Fetched): LinkedText {
  return { text: decodeManifest(Buffer.concat(body)), url };
}
