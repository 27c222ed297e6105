import { ServiceError } from "../model/errors.ts";
import { maxUrlLength, urlForMessage, shorten } from "../net/http-url.ts";
import { invalidManifestError } from "./manifest.ts";

/**
 * Resolves a URL `reference` of the manifest fetched from `manifest` (RFC 3986 §5). Throws for every unusable
 * URL: leaving out a segment, unlike a format, would splice its neighbours.
 *
 * @throws ServiceError `address_blocked` for a scheme other than http and https; `upstream_invalid` for an
 * invalid URL, one with a user name or password, or one of more than 8,192 characters.
 */
export function resolveSegmentUrl(reference: string, base: URL, manifest: URL): URL {
  if (reference.length > maxUrlLength) throw tooLongError(manifest, reference.length);
  const url = URL.parse(reference, base);
  if (url === null) throw invalidManifestError(manifest, "the URL of a segment must be valid");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    const scheme = shorten(url.protocol, 40);
    throw new ServiceError(
      "address_blocked",
      `the manifest at ${urlForMessage(manifest)} has a URL with the scheme ${scheme}; only http: and https: are fetched`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw invalidManifestError(manifest, "a URL must not contain a user name or password");
  }
  if (url.href.length > maxUrlLength) throw tooLongError(manifest, url.href.length);
  return url;
}

function tooLongError(manifest: URL, length: number) {
  return invalidManifestError(manifest, `a URL has ${length} characters, the limit is ${maxUrlLength}`);
}

const keyBytes = 16;
/** 16 bytes need at most 48 characters, and a media type. */
const maxDataLength = 1024;

/**
 * Returns the AES-128 key that a `data:` URL (RFC 2397) contains; `null` for any other URL, one of over
 * 1,024 characters, and content of other than 16 bytes.
 */
export function readDataKey(url: string): Buffer | null {
  if (url.length > maxDataLength) return null;
  const [, encoding, data] = /^data:[^,]*?(;\s*base64\s*)?,(.*)$/is.exec(url) ?? [];
  if (data === undefined) return null;
  const key = Buffer.from(decodePercents(data), encoding === undefined ? "latin1" : "base64");
  return key.length === keyBytes ? key : null;
}

function decodePercents(text: string): string {
  return text.replaceAll(/%([\da-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}
