import type { PageInfo } from "../../../src/model/page-info.ts";
import type { ResolveContext } from "../../../src/resolvers/resolver.ts";
import { createYtDlpResolver } from "../page/local-reader.ts";
import type { YtDlp } from "../../../src/resolvers/ytdlp/yt-dlp.ts";
import { createSavedClient, fixedNow, pageUrl, type SavedResponse } from "../page/saved-client.ts";

interface RecordedYtDlp extends YtDlp {
  /** The extracted URLs, in order. */
  readonly extracted: string[];
}

/** What a recorded yt-dlp says: of the extractor for every URL, and of the page. */
export interface Recording {
  extractor?: string | null | Error;
  /** A function gets how many entries are before those that are asked for. */
  info?: unknown;
}

/** Creates a yt-dlp that gives what was recorded; an Error rejects. */
export function createRecordedYtDlp({ extractor = null, info = {} }: Recording): RecordedYtDlp {
  const extracted: string[] = [];
  return {
    version: "2026.10.26",
    unenforced: [],
    extracted,
    async findExtractor(_url, signal) {
      signal.throwIfAborted();
      if (extractor instanceof Error) throw extractor;
      return extractor;
    },
    identify: async () => undefined,
    async extract(url, { signal, entriesStart = 0 }) {
      signal.throwIfAborted();
      extracted.push(url.href);
      if (info instanceof Error) throw info;
      return typeof info === "function" ? (info(entriesStart) as unknown) : info;
    },
    close: async () => {},
  };
}

/** Resolves `pageUrl`, of which yt-dlp gives this info dict; `responses` are those of manifests. */
export function readRecorded(
  info: unknown,
  context: Partial<ResolveContext> = {},
  responses: Record<string, SavedResponse | Error> = {},
  client = createSavedClient(responses),
): Promise<PageInfo> {
  const resolver = createYtDlpResolver({
    ytDlp: createRecordedYtDlp({ info }),
    client,
    now: fixedNow,
  });
  return resolver.resolve(new URL(pageUrl), { signal: new AbortController().signal, ...context });
}

/** An info dict of a video, as yt-dlp gives it. */
export function videoDict(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    _type: "video",
    id: "1",
    extractor: "example",
    extractor_key: "Example",
    webpage_url: pageUrl,
    title: "Otters 2024-05-06 07:08",
    fulltitle: "Otters",
    formats: [fileDict()],
    ...changes,
  };
}

/** A format of an info dict: a progressive file. */
export function fileDict(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    format_id: "18",
    url: "https://cdn.example.com/18.mp4",
    protocol: "https",
    ext: "mp4",
    ...changes,
  };
}
