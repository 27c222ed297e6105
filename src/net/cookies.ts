import { Cookie, defaultPath, domainMatch, getPublicSuffix, parseDate, pathMatch } from "tough-cookie";

/** Cookies, each with where it applies (RFC 6265). */
export interface CookieJar {
  /**
   * Stores the cookies of the `Set-Cookie` fields of a response of `url`. Skips those that are not well-formed, longer
   * than 4,096 characters (8,192 with their attributes), for a domain that the URL's host is not in or that is a public suffix
   * (`co.uk`), or secure although the URL is not. Of more than 100 fields only the last ones count.
   */
  store(url: URL, fields: readonly string[]): void;
  /** Returns the `Cookie` field of a request for `url`, longer paths first; `undefined` if no cookie applies. */
  fieldFor(url: URL): string | undefined;
  /** Returns all as `parseCookies` reads them; `""` if there are none. */
  toText(): string;
}

/** Of a jar; many servers refuse a request whose header is over 8 KiB. */
const maxCookies = 50;
/** Of a response, the last ones: 32 KiB of header can have 2,000, which take 5 µs each. */
const maxFields = 2 * maxCookies;
/** Of all names, values and paths of a jar, characters. */
const maxLength = 6 * 1024;
/** Of the name and value of a cookie that a response sets, characters (RFC 6265 §6.1). */
const maxCookieLength = 4096;
/** Of a `Set-Cookie` field, characters: parsing one takes quadratic time. */
const maxFieldLength = 2 * maxCookieLength;

/** Creates an empty jar. It holds at most 50 cookies with 6 KiB of names, values and paths; new ones push out the oldest. */
export function createCookieJar(): CookieJar {
  /** The oldest first. */
  const cookies = new Map<string, Cookie>();
  let length = 0;

  function remove(key: string): void {
    length -= lengthOf(cookies.get(key));
    cookies.delete(key);
  }

  return {
    store(url, fields) {
      for (const field of fields.slice(-maxFields)) {
        const cookie = parseSetCookie(field, url);
        if (cookie === undefined) continue;
        const key = [cookie.key, cookie.domain, cookie.path].join(";");
        remove(key);
        cookies.set(key, cookie);
        length += lengthOf(cookie);
        for (const oldest of cookies.keys()) {
          if (cookies.size <= maxCookies && length <= maxLength) break;
          remove(oldest);
        }
      }
    },
    fieldFor: (url) => cookieField(cookies.values(), url),
    toText: () => formatCookies(cookies.values()),
  };
}

const lengthOf = (cookie: Cookie | undefined): number =>
  cookie === undefined ? 0 : cookie.key.length + cookie.value.length + pathOf(cookie).length;

/**
 * Parses cookies as yt-dlp writes them with a format: `name=value; Domain=.example.com; Path=/; Secure;
 * Expires=1893456000; next=…`. A domain with a leading dot includes its subdomains, one without does not;
 * a cookie without a domain is for `host` alone. Skips cookies that are not well-formed, or for a public suffix.
 *
 * @param host `URL.hostname` of what the cookies come with
 */
export function parseCookies(text: string, host: string): Pick<CookieJar, "fieldFor"> {
  const written: WrittenCookie[] = [];
  for (const [name, value] of text.split(";").map(readPair)) {
    const attribute = name.toLowerCase();
    if (attributeNames.has(attribute)) {
      written.at(-1)?.attributes.set(attribute, unquote(value ?? ""));
    } else if (value !== undefined) {
      written.push({ name, value: unquote(value), attributes: new Map() });
    }
  }
  const cookies = written
    .map((cookie) => toCookie(cookie, host))
    .filter((cookie) => isWellFormed(cookie) && settleDomain(cookie, host));
  return { fieldFor: (url) => cookieField(cookies, url) };
}

/** Returns the `Cookie` field of a request for `url` (RFC 6265 §5.4); `undefined` if no cookie applies. */
function cookieField(cookies: Iterable<Cookie>, url: URL): string | undefined {
  const matching = [...cookies]
    .filter((cookie) => appliesTo(cookie, url))
    .toSorted((a, b) => pathOf(b).length - pathOf(a).length);
  if (matching.length === 0) return undefined;
  return matching.map((cookie) => cookie.cookieString()).join("; ");
}

function parseSetCookie(field: string, url: URL): Cookie | undefined {
  if (field.length > maxFieldLength) return undefined;
  // The library would cut the field there.
  if (/[\0\r\n]/.test(field)) return undefined;
  const cookie = Cookie.parse(field);
  if (cookie === undefined || !isWellFormed(cookie)) return undefined;
  if (cookie.key.length + cookie.value.length > maxCookieLength) return undefined;
  if (cookie.secure && !isHttps(url)) return undefined;
  if (!cookie.path?.startsWith("/")) cookie.path = defaultPath(url.pathname);
  cookie.hostOnly = cookie.domain === null;
  cookie.domain ??= url.hostname;
  const isAllowed = settleDomain(cookie, url.hostname) && isForHost(cookie, url.hostname);
  return isAllowed ? cookie : undefined;
}

/** A cookie as yt-dlp writes it, with its attributes by name in lower case. */
interface WrittenCookie {
  name: string;
  value: string;
  attributes: Map<string, string>;
}

const attributeNames: ReadonlySet<string> = new Set(
  "domain path secure expires max-age httponly samesite version comment".split(" "),
);

function toCookie({ name, value, attributes }: WrittenCookie, host: string): Cookie {
  const domain = attributes.get("domain") || host;
  const path = attributes.get("path") ?? "";
  const maxAge = attributes.get("max-age") ?? "";
  return new Cookie({
    key: name,
    value,
    domain: domain.replace(/^\./, "").toLowerCase(),
    hostOnly: !domain.startsWith("."),
    path: path.startsWith("/") ? path : "/",
    secure: attributes.has("secure"),
    expires: parseExpiry(attributes.get("expires") ?? ""),
    maxAge: /^-?\d{1,12}$/.test(maxAge) ? Number(maxAge) : null,
  });
}

/** Parses seconds since the epoch, or a date as a server writes it. */
function parseExpiry(text: string): Date | "Infinity" {
  const date = /^\d{1,15}$/.test(text) ? new Date(Number(text) * 1000) : parseDate(text);
  return date === undefined || Number.isNaN(date.getTime()) ? "Infinity" : date;
}

/** Returns cookies as `parseCookies` reads them, without those that have expired. */
function formatCookies(cookies: Iterable<Cookie>): string {
  return [...cookies]
    .filter((cookie) => !hasExpired(cookie) && !attributeNames.has(cookie.key.toLowerCase()))
    .map((cookie) => {
      const { key, value, domain, hostOnly, secure } = cookie;
      const expiresMs = cookie.expiryTime() ?? Infinity;
      const expires = expiresMs === Infinity ? "" : `; Expires=${Math.floor(expiresMs / 1000)}`;
      const place = `Domain=${hostOnly ? "" : "."}${domain}; Path=${pathOf(cookie)}`;
      return `${key}=${quote(value)}; ${place}${secure ? "; Secure" : ""}${expires}`;
    })
    .join("; ");
}

/** Whether the name is a token (RFC 9110 §5.6.2), and the value can be in a header field without ending its cookie. */
function isWellFormed({ key, value }: Cookie): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(key) && /^[\x20-\x3a\x3c-\x7e]*$/.test(value);
}

/** A public suffix has no cookies for its subdomains. Returns false unless it is `host` itself (RFC 6265 §5.3). */
function settleDomain(cookie: Cookie, host: string): boolean {
  const { domain, hostOnly } = cookie;
  const options = { allowSpecialUseDomain: true, ignoreError: true };
  if (hostOnly === true || getPublicSuffix(domain ?? "", options) !== undefined) return true;
  cookie.hostOnly = true;
  return domain === host;
}

function appliesTo(cookie: Cookie, url: URL): boolean {
  if (cookie.secure && !isHttps(url)) return false;
  if (!isForHost(cookie, url.hostname) || !pathMatch(url.pathname, pathOf(cookie))) return false;
  return !hasExpired(cookie);
}

function isForHost({ domain, hostOnly }: Cookie, host: string): boolean {
  // Python's cookie jar calls hosts without a dot like this.
  if (host === domain || `${host}.local` === domain) return true;
  return hostOnly !== true && domainMatch(host, domain, false) === true;
}

function hasExpired(cookie: Cookie): boolean {
  return (cookie.expiryTime() ?? Infinity) <= Date.now();
}

const pathOf = ({ path }: Cookie): string => path ?? "/";
const isHttps = ({ protocol }: URL): boolean => protocol === "https:";

function readPair(text: string): readonly [name: string, value: string | undefined] {
  const equals = text.indexOf("=");
  if (equals === -1) return [text.trim(), undefined];
  return [text.slice(0, equals).trim(), text.slice(equals + 1).trim()];
}

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
