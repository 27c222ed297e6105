import { buffer } from "node:stream/consumers";
import { maxManifestLength } from "../../../manifests/manifest.ts";
import { decodeManifest, sniffManifest } from "../../../manifests/text.ts";
import type { HeadersFor, HttpClient, HttpResponse } from "../../../net/client.ts";
import { maxFailures, RetryPolicy } from "./retry-policy.ts";

const backoffMs = 500;

/**
 * Fetches the text of a playlist or MPD. What is neither, such as a message with status 200, is fetched three times more, as parts of media
 * are, then taken for its parser to refuse; that of a reload is taken at once: it comes again.
 *
 * @throws ServiceError of the client; `signal.reason`
 */
export async function fetchManifest(
  url: URL,
  client: HttpClient,
  { isReload, signal, headers }: { isReload: boolean; signal: AbortSignal; headers: HeadersFor },
): Promise<{ text: string; response: HttpResponse }> {
  const retryPolicy = new RetryPolicy(backoffMs, signal);
  for (let repeated = 0; ;) {
    const response = await client.get(url, { signal, headers, maxBytes: maxManifestLength });
    const bytes = await buffer(response.body);
    if (isReload || repeated === maxFailures || sniffManifest(bytes) !== null) {
      return { text: decodeManifest(bytes), response };
    }
    await retryPolicy.wait((repeated += 1));
  }
}
