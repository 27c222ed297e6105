/**
 * Parses the value of `Proxy-Authorization` with the scheme Basic (RFC 7617 §2). Returns undefined for
 * another scheme and for a value without a colon.
 */
export function parseBasicCredential(
  value: string | undefined,
): { name: string; secret: string } | undefined {
  const encoded = /^basic +([a-z\d+/]+=*)$/i.exec(value ?? "")?.[1];
  const text = Buffer.from(encoded ?? "", "base64").toString();
  const colon = text.indexOf(":");
  return colon === -1 ? undefined : { name: text.slice(0, colon), secret: text.slice(colon + 1) };
}
