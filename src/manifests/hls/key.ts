import { ServiceError } from "../../model/errors.ts";
import { urlForMessage, shorten } from "../../net/http-url.ts";
import { type SegmentKey, readDataKey, resolveSegmentUrl } from "../segments.ts";
import { type Attributes, readAttributes } from "./lines.ts";
import { invalidManifestError } from "../manifest.ts";

/**
 * Checks line by line whether all keys that apply come from licence servers. Keys of several KEYFORMATs may apply at once; one
 * other is enough to decrypt (RFC 8216 §4.3.2.4).
 */
export function createLicenceCheck() {
  const formats = new Set<string>();
  let hasPlain = false;
  return {
    /** Applies the attributes of an EXT-X-KEY or EXT-X-SESSION-KEY; returns what it names. */
    set(attributes: Attributes): KeyKind {
      const kind = kindOf(attributes);
      if (kind === "none") formats.clear();
      if (kind === "licensed") formats.add(formatOf(attributes));
      hasPlain = kind === "plain" || (hasPlain && kind !== "none");
      return kind;
    },
    /** Applies an EXT-X-FAXS-CM: an Adobe Access key from a licence server. */
    setLicensed(): void {
      formats.add("Adobe Access");
    },
    /** The first KEYFORMAT that applies; undefined: they do not all come from licence servers. */
    get format(): string | undefined {
      return hasPlain ? undefined : formats.values().next().value;
    },
  };
}

/** Creates the keys of a media playlist, which are applied line by line. */
export function createPlaylistKeys(url: URL) {
  const licences = createLicenceCheck();
  let plain: PlainKey | null = null;
  return {
    /** Applies the attribute list of an EXT-X-KEY. */
    set(list: string): void {
      const attributes = readAttributes(list);
      const kind = licences.set(attributes);
      if (kind === "plain") plain = readPlainKey(attributes, url);
      if (kind === "none") plain = null;
    },
    setLicensed: licences.setLicensed,
    /**
     * Returns the key of the next segment (its sequence number is the default IV) or, for `null`, of an
     * init section, which must have an IV; `null` if it is not encrypted.
     *
     * @throws ServiceError `drm_protected` if every applicable key is from a licence server or the method is
     * none of `methods`; `upstream_invalid` for a missing or malformed URI or IV; `address_blocked` for a URL that
     * is neither http(s) nor a `data:` URL with a key.
     */
    current(sequence: number | null): SegmentKey | null {
      // An init section has no samples.
      if (plain?.method === sampleMethod && sequence === null) return null;
      if (plain !== null) return keyOf(plain, sequence, url);
      const { format } = licences;
      if (format === undefined) return null;
      throw protectedError(url, `its keys come from a licence server (${shorten(format, 60)})`);
    },
  };
}

/**
 * What an EXT-X-KEY or EXT-X-SESSION-KEY (RFC 8216 §4.3.2.4) names. `licensed`: a key from a licence server, which has a
 * KEYFORMAT other than `identity`, or a FairPlay `skd:` URI; `none`: from here on there are no keys.
 */
type KeyKind = "none" | "licensed" | "plain";

function kindOf(attributes: Attributes): KeyKind {
  if (attributes.get("METHOD")?.toUpperCase() === "NONE") return "none";
  const isSkd = /^skd:/i.test(attributes.get("URI") ?? "");
  return isSkd || formatOf(attributes) !== "identity" ? "licensed" : "plain";
}

function formatOf(attributes: Attributes): string {
  return attributes.get("KEYFORMAT")?.toLowerCase() || "identity";
}

const sampleMethod = "SAMPLE-AES";

/** What keys of each method say. hls.js and Shaka Player have those of 256 bits, which RFC 8216 does not know. */
const methods = new Map<string, Pick<SegmentKey, "isOfSamples" | "cipher">>([
  ["AES-128", {}],
  ["AES-256", { cipher: "aes-256-cbc" }],
  ["AES-256-CTR", { cipher: "aes-256-ctr" }],
  [sampleMethod, { isOfSamples: true }],
]);

type PlainKey = ReturnType<typeof readPlainKey>;

/**
 * Reads a key of the format `identity`: the response at its `url`, or its content (`data:`), is the key itself. `iv`: `null`
 * if it is the sequence number.
 */
function readPlainKey(attributes: Attributes, url: URL) {
  const method = attributes.get("METHOD")?.toUpperCase();
  const uri = attributes.get("URI") ?? "";
  if (method === undefined || uri === "") {
    throw invalidManifestError(url, "EXT-X-KEY must have METHOD and URI (RFC 8216 §4.3.2.4)");
  }
  const keyUrl = readDataKey(uri) ? uri : resolveSegmentUrl(uri, url, url).href;
  return { method, url: keyUrl, iv: parseIv(attributes.get("IV"), url) };
}

function parseIv(value: string | undefined, url: URL): string | null {
  if (value === undefined) return null;
  const digits = /^0x([\da-f]{1,32})$/i.exec(value)?.[1];
  if (digits !== undefined) return digits.toLowerCase().padStart(32, "0");
  throw invalidManifestError(url, "IV must be 0x and 1 to 32 hexadecimal digits", value);
}

function keyOf({ method, url: keyUrl, iv }: PlainKey, sequence: number | null, url: URL): SegmentKey {
  const how = methods.get(method);
  if (how === undefined) {
    const known = [...methods.keys()].join(", ");
    throw protectedError(url, `METHOD must be ${known} or NONE, ${shorten(method, 40)} is not supported`);
  }
  if (iv === null && sequence === null) {
    throw invalidManifestError(url, "the key of an EXT-X-MAP must state its IV (RFC 8216 §4.3.2.5)");
  }
  return { url: keyUrl, iv: iv ?? sequence?.toString(16).padStart(32, "0") ?? "", ...how };
}

function protectedError(url: URL, reason: string): ServiceError {
  return new ServiceError("drm_protected", `cannot decrypt the stream at ${urlForMessage(url)}: ${reason}`);
}
