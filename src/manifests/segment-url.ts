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
  return invalidManifestError(
    manifest,
    `a URL has ${length} characters, the limit is ${maxUrlLength}`,
  );
}
