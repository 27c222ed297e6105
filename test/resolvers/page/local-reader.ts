import {
  createPageResolver as createWith,
  type PageResolverOptions,
} from "../../../src/resolvers/page/page-resolver.ts";
import { readBody } from "../../../src/resolvers/page/reader/read-body.ts";
import type { Reader } from "../../../src/resolvers/page/reader/reader.ts";
import { lengthBytes, packOutcome, unpackOutcome } from "../../../src/resolvers/page/reader/wire.ts";
import {
  createYtDlpResolver as createYtDlpWith,
  type YtDlpResolverOptions,
} from "../../../src/resolvers/ytdlp/ytdlp-resolver.ts";

/** Creates a reader that reads in this process: without a start, and without limits of time and memory. */
export function createLocalReader(): Reader {
  return {
    prepare() {},
    async read(job, body, { signal }) {
      const outcome = packOutcome(job, () => readBody(job, Buffer.concat(body)));
      signal.throwIfAborted();
      return unpackOutcome(job, outcome.subarray(lengthBytes));
    },
    close: async () => {},
  };
}

/** Creates a resolver of pages that reads them in this process. */
export function createPageResolver(options: Omit<PageResolverOptions, "reader">) {
  return createWith({ ...options, reader: createLocalReader() });
}

/** Creates a resolver with yt-dlp that reads manifests in this process. */
export function createYtDlpResolver(options: Omit<YtDlpResolverOptions, "reader">) {
  return createYtDlpWith({ ...options, reader: createLocalReader() });
}
