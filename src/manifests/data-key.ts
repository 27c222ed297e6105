const keyBytes = 16;
/** 16 bytes need at most 48 characters, and a media type. */
const maxLength = 1024;

/**
 * Returns the AES-128 key that a `data:` URL (RFC 2397) contains; `null` for any other URL, one of over
 * 1,024 characters, and content of other than 16 bytes.
 */
export function readDataKey(url: string): Buffer | null {
  if (url.length > maxLength) return null;
  const [, encoding, data] = /^data:[^,]*?(;\s*base64\s*)?,(.*)$/is.exec(url) ?? [];
  if (data === undefined) return null;
  const key = Buffer.from(decodePercents(data), encoding === undefined ? "latin1" : "base64");
  return key.length === keyBytes ? key : null;
}

function decodePercents(text: string): string {
  return text.replaceAll(/%([\da-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}
