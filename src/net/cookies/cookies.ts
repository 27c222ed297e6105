/** A cookie and where it applies (RFC 6265 §5.3). */
export interface Cookie {
  name: string;
  value: string;
  /** In lower case, without a leading dot. */
  domain: string;
  /** Only `domain` itself, none of its subdomains. */
  isHostOnly: boolean;
  path: string;
  isSecure: boolean;
  /** Milliseconds since the epoch; Infinity: as long as the process. */
  expiresMs: number;
}

/** Of name and value, characters (RFC 6265 §6.1). */
const maxCookieLength = 4096;

/**
 * Parses cookies as yt-dlp states them with a format: `name=value; Domain=.example.com; Path=/; Secure;
 * Expires=1893456000; next=…`. A domain with a leading dot includes its subdomains, one without does not;
 * a cookie without a domain is for `host` alone. Skips cookies that are not well-formed (RFC 6265 §5.2).
 *
 * @param host `URL.hostname` of what the cookies come with
 * @param nowMs The time from which `Max-Age` counts
 */
export function parseCookies(text: string, host: string, nowMs: number): Cookie[] {
  const cookies: Cookie[] = [];
  let current: Cookie | undefined;
  for (const [name, written] of text.split(";").map(readPair)) {
    const setAttribute = attributes.get(name.toLowerCase());
    if (setAttribute !== undefined) {
      if (current !== undefined) setAttribute(current, unquote(written ?? ""), nowMs);
    } else if (written !== undefined) {
      current = createCookie(name, unquote(written), host);
      if (current !== undefined) cookies.push(current);
    }
  }
  return cookies;
}

/**
 * Parses one `Set-Cookie` field of a response of `url`. Returns undefined for a cookie that is not well-formed, longer than
 * 4,096 characters, for a domain that the URL's host is not in, or secure although the URL is not. Knows no public suffixes
 * of several labels such as `co.uk`.
 *
 * @param nowMs The time from which `Max-Age` counts
 */
export function parseSetCookie(field: string, url: URL, nowMs: number): Cookie | undefined {
  const [[name, value], ...rest] = field.split(";").map(readPair) as [Pair, ...Pair[]];
  const cookie = value === undefined ? undefined : createCookie(name, value, url.hostname);
  if (cookie === undefined || name.length + cookie.value.length > maxCookieLength) return undefined;
  const stated = new Map(rest.map(([attribute, text = ""]) => [attribute.toLowerCase(), text]));
  cookie.path = url.pathname.slice(0, url.pathname.lastIndexOf("/")) || "/";
  if (!stated.get("path")?.startsWith("/")) stated.delete("path");
  // With a domain, stated with or without the dot, it is for the subdomains too.
  const domain = stated.get("domain")?.replace(/^\./, "") ?? "";
  stated.set("domain", domain && `.${domain}`);
  // In the order of `attributes`: `Max-Age` counts more than `Expires`.
  for (const [attribute, setAttribute] of attributes) {
    const text = stated.get(attribute);
    if (text !== undefined) setAttribute(cookie, text, nowMs);
  }
  const isAllowed = isForHost(cookie, url.hostname) && (!cookie.isSecure || isHttps(url));
  return isAllowed ? cookie : undefined;
}

/** Returns cookies as `parseCookies` reads them, without those that have expired. */
export function formatCookies(cookies: readonly Cookie[], nowMs: number): string {
  return cookies
    .filter(({ name, expiresMs }) => expiresMs > nowMs && !attributes.has(name.toLowerCase()))
    .map(({ name, value, domain, isHostOnly, path, isSecure, expiresMs }) => {
      const expires = expiresMs === Infinity ? "" : `; Expires=${Math.floor(expiresMs / 1000)}`;
      const place = `Domain=${isHostOnly ? "" : "."}${domain}; Path=${path}`;
      return `${name}=${quote(value)}; ${place}${isSecure ? "; Secure" : ""}${expires}`;
    })
    .join("; ");
}

/**
 * Returns the `Cookie` field of a request for `url` (RFC 6265 §5.4): longer paths first; `undefined` if no
 * cookie applies.
 */
export function cookieField(
  cookies: readonly Cookie[],
  url: URL,
  nowMs: number,
): string | undefined {
  const matching = cookies
    .filter((cookie) => isForHost(cookie, url.hostname))
    .filter(({ path }) => isOnPath(path, url.pathname))
    .filter(({ isSecure, expiresMs }) => expiresMs > nowMs && (!isSecure || isHttps(url)))
    .toSorted((a, b) => b.path.length - a.path.length);
  if (matching.length === 0) return undefined;
  return matching.map(({ name, value }) => `${name}=${value}`).join("; ");
}

type Pair = readonly [name: string, value: string | undefined];

function readPair(text: string): Pair {
  const equals = text.indexOf("=");
  if (equals === -1) return [text.trim(), undefined];
  return [text.slice(0, equals).trim(), text.slice(equals + 1).trim()];
}

/** A token (RFC 9110 §5.6.2), and a value that can be in a header field without ending its cookie. */
function createCookie(name: string, value: string, host: string): Cookie | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || !/^[\x20-\x3a\x3c-\x7e]*$/.test(value))
    return undefined;
  const place = { domain: host, isHostOnly: true, path: "/", isSecure: false };
  return { name, value, ...place, expiresMs: Number.POSITIVE_INFINITY };
}

type SetAttribute = (cookie: Cookie, value: string, nowMs: number) => void;

const attributes: ReadonlyMap<string, SetAttribute> = new Map<string, SetAttribute>([
  [
    "domain",
    (cookie, value) => {
      if (value === "") return;
      cookie.domain = value.replace(/^\./, "").toLowerCase();
      cookie.isHostOnly = !value.startsWith(".");
    },
  ],
  [
    "path",
    (cookie, value) => {
      cookie.path = value.startsWith("/") ? value : "/";
    },
  ],
  [
    "secure",
    (cookie) => {
      cookie.isSecure = true;
    },
  ],
  [
    "expires",
    (cookie, value) => {
      // yt-dlp states seconds since the epoch, a server a date.
      const ms = /^\d{1,15}$/.test(value) ? Number(value) * 1000 : Date.parse(value);
      if (!Number.isNaN(ms)) cookie.expiresMs = ms;
    },
  ],
  [
    "max-age",
    (cookie, value, nowMs) => {
      if (/^-?\d{1,12}$/.test(value)) cookie.expiresMs = nowMs + Number(value) * 1000;
    },
  ],
  ...["httponly", "samesite", "version", "comment"].map((name) => [name, () => {}] as const),
]);

/** Reverts the quoting of Python's `SimpleCookie`: `"a\054b"`. */
function unquote(value: string): string {
  const [, quoted] = /^"(.*)"$/s.exec(value) ?? [];
  if (quoted === undefined) return value;
  return quoted.replaceAll(/\\([0-3][0-7]{2}|.)/gs, (_, escaped: string) =>
    escaped.length === 3 ? String.fromCharCode(Number.parseInt(escaped, 8)) : escaped,
  );
}

/** Quotes a value that `unquote` would take for a quoted one. */
function quote(value: string): string {
  return /^".*"$/s.test(value) ? `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"` : value;
}

/** RFC 6265 §5.1.3. Of a domain without a dot there are no subdomains: it is a public suffix. */
function isForHost({ domain, isHostOnly }: Cookie, host: string): boolean {
  // Python's cookie jar calls hosts without a dot like this.
  if (host === domain || `${host}.local` === domain) return true;
  const isAddress = /^[\d.]+$|:/.test(host);
  return !isHostOnly && !isAddress && domain.includes(".") && host.endsWith(`.${domain}`);
}

/** RFC 6265 §5.1.4. */
function isOnPath(path: string, requested: string): boolean {
  if (requested === path) return true;
  return requested.startsWith(path.endsWith("/") ? path : `${path}/`);
}

const isHttps = ({ protocol }: URL): boolean => protocol === "https:";
