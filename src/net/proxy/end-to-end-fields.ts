/** Fields of one connection, which a proxy does not forward (RFC 9110 §7.6.1, §11.7). */
const hopByHop: readonly string[] = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/**
 * Returns the fields of a message that a proxy forwards, in the same form: names and values in turn, as in
 * `IncomingMessage.rawHeaders`. Drops those of the connection, those that `Connection` names, and `more`
 * (names in lower case).
 */
export function endToEndFields(raw: readonly string[], more: readonly string[] = []): string[] {
  const lines = fieldLines(raw);
  const options = lines
    .filter(({ name }) => name === "connection")
    .flatMap(({ line }) => line[1].split(","))
    .map((option) => option.trim().toLowerCase());
  const dropped = new Set([...hopByHop, ...options, ...more]);
  return lines.filter(({ name }) => !dropped.has(name)).flatMap(({ line }) => line);
}

function fieldLines(raw: readonly string[]) {
  return raw
    .map((name, i) => ({ name: name.toLowerCase(), line: [name, raw[i + 1] ?? ""] as const }))
    .filter((_line, i) => i % 2 === 0);
}
