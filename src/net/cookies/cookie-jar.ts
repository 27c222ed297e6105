import { type Cookie, cookieField, formatCookies, parseSetCookie } from "./cookies.ts";

/** The cookies that the responses to some requests have set. */
export interface CookieJar {
  /** Stores the cookies of the `Set-Cookie` fields of a response of `url`; skips those that are not valid. */
  store(url: URL, fields: readonly string[]): void;
  /** Returns the `Cookie` field of a request for `url`; `undefined` if no cookie applies. */
  fieldFor(url: URL): string | undefined;
  /** Returns all as `parseCookies` reads them; `""` if there are none. */
  toText(): string;
}

const maxCookies = 50;
/** Of all names, values and paths: many servers refuse a request whose header is over 8 KiB. */
const maxLength = 6 * 1024;

/** Creates an empty jar. It holds at most 50 cookies with 6 KiB of names, values and paths; new ones push out the oldest. */
export function createCookieJar(): CookieJar {
  const cookies = new Map<string, Cookie>();
  let length = 0;

  function remove(key: string): void {
    length -= lengthOf(cookies.get(key));
    cookies.delete(key);
  }

  return {
    store(url, fields) {
      for (const field of fields) {
        const cookie = parseSetCookie(field, url, Date.now());
        if (cookie === undefined) continue;
        const key = [cookie.name, cookie.domain, cookie.path].join(";");
        remove(key);
        cookies.set(key, cookie);
        length += lengthOf(cookie);
        for (const oldest of cookies.keys()) {
          if (cookies.size <= maxCookies && length <= maxLength) break;
          remove(oldest);
        }
      }
    },
    fieldFor: (url) => cookieField([...cookies.values()], url, Date.now()),
    toText: () => formatCookies([...cookies.values()], Date.now()),
  };
}

const lengthOf = (cookie: Cookie | undefined): number =>
  cookie === undefined ? 0 : cookie.name.length + cookie.value.length + cookie.path.length;
