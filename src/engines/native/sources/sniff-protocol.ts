import type { HeadersFor, HttpClient } from "../../../net/client.ts";
import type { Format } from "../../../model/page-info.ts";

/** A manifest is recognized by its first bytes. */
const maxHeadBytes = 2048;

/**
 * Returns the protocol of the manifest at `url`, `null` if it is none. Requests it only if the format has
 * neither extension nor media type.
 *
 * @throws ServiceError of the client; `signal.reason`
 */
export async function sniffProtocol(
  url: URL,
  { ext, mime_type }: Pick<Format, "ext" | "mime_type">,
  { client, headers, signal }: { client: HttpClient; headers: HeadersFor; signal: AbortSignal },
): Promise<"m3u8" | "dash" | null> {
  if (ext !== null || mime_type !== null) return null;
  const response = await client.get(url, { signal, headers, maxBytes: Number.POSITIVE_INFINITY });
  let head = "";
  for await (const chunk of response.body) {
    head += Buffer.from(chunk).toString("latin1", 0, maxHeadBytes);
    if (head.length >= maxHeadBytes) break;
  }
  const text = head.replace(/^\xef\xbb\xbf/, "").trimStart();
  if (text.startsWith("#EXTM3U")) return "m3u8";
  return text.startsWith("<") && /<MPD[\s>]/.test(text) ? "dash" : null;
}
