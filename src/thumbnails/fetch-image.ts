import { ServiceError } from "../model/errors.ts";
import type { HttpClient } from "../net/client.ts";
import { urlForMessage } from "../net/http-url.ts";
import { createPageHeaders } from "../net/http/site-headers.ts";
import { type ImageType, imageTypeOf, typeBytes } from "./image-type.ts";

export interface Image {
  bytes: Buffer;
  type: ImageType;
}

const maxBytes = 2 * 1024 * 1024;

/**
 * Fetches an image that the page at `page` names: at most 2 MiB, of a type that its first bytes tell, whatever the response
 * says of it.
 *
 * @throws ServiceError as `HttpClient.get`; `upstream_invalid` if the response is not such an image.
 */
export async function fetchImage(
  client: HttpClient,
  url: URL,
  page: URL,
  signal: AbortSignal,
): Promise<Image> {
  const response = await client.get(url, {
    signal,
    maxBytes,
    accept: "image/avif,image/webp,image/png,image/jpeg,image/gif",
    headers: createPageHeaders(page),
  });
  const chunks: Uint8Array[] = [];
  let length = 0;
  let type: ImageType | undefined;
  for await (const chunk of response.body) {
    chunks.push(chunk);
    length += chunk.length;
    if (type !== undefined || length < typeBytes) continue;
    type = imageTypeOf(Buffer.concat(chunks));
    // Leaves the rest of a page or a film unread.
    if (type === undefined) break;
  }
  const bytes = Buffer.concat(chunks);
  type ??= imageTypeOf(bytes);
  if (type !== undefined) return { bytes, type };
  const what = `GET ${urlForMessage(response.url)}`;
  throw new ServiceError(
    "upstream_invalid",
    `${what} returned no image of type JPEG, PNG, WebP, AVIF or GIF`,
  );
}
