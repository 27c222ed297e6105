import { ServiceError } from "../errors.ts";
import { urlForMessage, shorten } from "../net/http-url.ts";
import { readAttributes } from "./hls-lines.ts";
import { invalidManifestError } from "./manifest.ts";
import { resolveSegmentUrl } from "./segment-url.ts";
import type { SegmentKey } from "./segments.ts";

/**
 * Whether an EXT-X-KEY or EXT-X-SESSION-KEY (RFC 8216 §4.3.2.4) names a key that only a licence
 * server gives: a KEYFORMAT other than `identity`, or FairPlay's `skd:` address.
 */
export function isLicensedKey(list: string): boolean {
  const attributes = readAttributes(list);
  return attributes.get("METHOD")?.toUpperCase() !== "NONE" && isLicensed(attributes);
}

/** The keys of a media playlist as its lines go by. */
export interface PlaylistKeys {
  /** Takes the attribute list of an EXT-X-KEY. */
  set(list: string): void;
  /** Takes an EXT-X-FAXS-CM: Adobe's key, which only a licence server gives. */
  setLicensed(): void;
  /**
   * The key of what comes next in the playlist: a segment with its sequence number, or (`null`) an
   * init section, for which the IV has to be stated.
   *
   * @throws ServiceError `drm_protected` where none of the keys that apply can be had, or the
   * method is not AES-128; `upstream_invalid` for a key without address or IV, or with a malformed
   * one.
   */
  current(sequence: number | null): SegmentKey | null;
}

/** Keys of several KEYFORMATs apply at once, and one of them is enough (RFC 8216 §4.3.2.4). */
export function createPlaylistKeys(url: URL): PlaylistKeys {
  const licensed = new Set<string>();
  let plain: PlainKey | null = null;
  return {
    set(list) {
      const attributes = readAttributes(list);
      if (attributes.get("METHOD")?.toUpperCase() === "NONE") {
        licensed.clear();
        plain = null;
      } else if (isLicensed(attributes)) licensed.add(formatOf(attributes));
      else plain = readPlainKey(attributes, url);
    },
    setLicensed() {
      licensed.add("Adobe Access");
    },
    current(sequence) {
      if (plain !== null) return keyOf(plain, sequence, url);
      const [format] = licensed;
      if (format === undefined) return null;
      throw locked(url, `its keys are given by a licence server (${shorten(format, 60)})`);
    },
  };
}

type Attributes = ReadonlyMap<string, string>;

function isLicensed(attributes: Attributes): boolean {
  return formatOf(attributes) !== "identity" || /^skd:/i.test(attributes.get("URI") ?? "");
}

function formatOf(attributes: Attributes): string {
  return attributes.get("KEYFORMAT")?.toLowerCase() || "identity";
}

/** A key of the format `identity`: the address gives the key itself. */
interface PlainKey {
  method: string;
  url: string;
  /** `null`: the sequence number is the IV. */
  iv: string | null;
}

function readPlainKey(attributes: Attributes, url: URL): PlainKey {
  const method = attributes.get("METHOD")?.toUpperCase();
  const uri = attributes.get("URI") ?? "";
  if (method === undefined || uri === "") {
    throw invalidManifestError(url, "EXT-X-KEY must have METHOD and URI (RFC 8216 §4.3.2.4)");
  }
  const address = resolveSegmentUrl(uri, url, url).href;
  return { method, url: address, iv: readIv(attributes.get("IV"), url) };
}

function readIv(value: string | undefined, url: URL): string | null {
  if (value === undefined) return null;
  const digits = /^0x([\da-f]{1,32})$/i.exec(value)?.[1];
  if (digits !== undefined) return digits.toLowerCase().padStart(32, "0");
  const got = JSON.stringify(value.slice(0, 60));
  throw invalidManifestError(url, `IV must be 0x and 1 to 32 hexadecimal digits, got ${got}`);
}

function keyOf({ method, url: address, iv }: PlainKey, sequence: number | null, url: URL) {
  if (method !== "AES-128") {
    throw locked(url, `METHOD must be AES-128 or NONE, ${shorten(method, 40)} is not supported`);
  }
  if (iv === null && sequence === null) {
    throw invalidManifestError(
      url,
      "the key of an EXT-X-MAP must state its IV (RFC 8216 §4.3.2.5)",
    );
  }
  return { url: address, iv: iv ?? sequence?.toString(16).padStart(32, "0") ?? "" };
}

function locked(url: URL, reason: string): ServiceError {
  return new ServiceError(
    "drm_protected",
    `cannot decrypt the stream at ${urlForMessage(url)}: ${reason}`,
  );
}
