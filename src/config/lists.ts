import { parseNetworks } from "../net/addresses/addresses.ts";
import { shorten } from "../net/http-url.ts";

/** Returns the entries of a setting, which are separated by commas. */
function splitList(list: string): string[] {
  return list
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

/**
 * Parses networks in CIDR notation.
 *
 * @throws RangeError that names `setting` and the first text that is not a network.
 */
export function parseNetworkList(setting: string, list: string) {
  return parseNetworks(splitList(list), setting);
}

/**
 * Parses ALLOWED_HOSTS, names of hosts.
 *
 * @throws RangeError that names the first one that is no host name.
 */
export function parseHosts(list: string): ReadonlySet<string> {
  return new Set(splitList(list).map(parseHost));
}

function parseHost(text: string): string {
  const url = URL.parse(`http://${text}`);
  if (url !== null && !text.includes("*") && url.href === `http://${url.hostname}/`) {
    return url.hostname.replace(/\.$/, "");
  }
  const value = JSON.stringify(shorten(text, 100));
  throw new RangeError(`ALLOWED_HOSTS must be host names without port, got ${value}`);
}

const anyFirefox = "moz-extension://*";
const firefoxOrigin = /^moz-extension:\/\/[\da-f-]{36}$/;
const chromeOrigin = /^chrome-extension:\/\/[a-p]{32}$/;

/**
 * Parses ALLOWED_ORIGINS: `https://app.example.com`, with a port if it is not the default, `chrome-extension://<id>`,
 * `moz-extension://<id>`, or `moz-extension://*`, as Firefox gives each installation an id of its own.
 *
 * @throws RangeError that names the first one that is no origin.
 */
export function parseOrigins(list: string) {
  const all = new Set(splitList(list).map(parseOrigin));
  const hasFirefox = all.delete(anyFirefox);
  return {
    isEmpty: all.size === 0 && !hasFirefox,
    has: (origin: string): boolean => all.has(origin) || (hasFirefox && firefoxOrigin.test(origin)),
  };
}

function parseOrigin(text: string): string {
  if (text === anyFirefox || firefoxOrigin.test(text) || chromeOrigin.test(text)) return text;
  const url = URL.parse(text);
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && [url.origin, `${url.origin}/`].includes(text);
  if (isOrigin && !url.hostname.includes("*")) return url.origin;
  const rule = "must be origins such as https://app.example.com or chrome-extension://<id>, comma-separated";
  throw new RangeError(`ALLOWED_ORIGINS ${rule}, got ${JSON.stringify(shorten(text, 100))}`);
}
