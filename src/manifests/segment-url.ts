import { ServiceError } from "../errors.ts";
import { maxUrlLength, urlForMessage, shorten } from "../net/http-url.ts";
import { invalidManifestError } from "./manifest.ts";

/**
 * The absolute address that a manifest (found at `manifest`) means by `reference` (RFC 3986 §5).
 * Unlike a format, a segment cannot be left out: what follows it would be spliced to what is before
 * it.
 *
 * @throws ServiceError `address_blocked` for a scheme other than http and https; `upstream_invalid`
 * for what is no URL, has a user name or password, or is longer than 8,192 characters.
 */
export function resolveSegmentUrl(reference: string, base: URL, manifest: URL): URL {
  if (reference.length > maxUrlLength) throw tooLong(manifest, reference.length);
  const url = URL.parse(reference, base);
  if (url === null)
    throw invalidManifestError(manifest, "the address of a segment must be a valid URL");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    const scheme = shorten(url.protocol, 40);
    throw new ServiceError(
      "address_blocked",
      `the manifest at ${urlForMessage(manifest)} leads to an address with the scheme ${scheme} but only http: and https: are fetched`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw invalidManifestError(manifest, "an address must not contain a user name or password");
  }
  if (url.href.length > maxUrlLength) throw tooLong(manifest, url.href.length);
  return url;
}

function tooLong(manifest: URL, length: number) {
  return invalidManifestError(
    manifest,
    `an address may have ${maxUrlLength} characters, but one has ${length}`,
  );
}
