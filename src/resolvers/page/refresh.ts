import { tryParseUrl } from "../../parsers/url.ts";
import type { Markup } from "./markup/markup.ts";

/** A page that is left later is one to be read, or updates itself. */
const maxDelayS = 10;

/**
 * Returns where the browser is to go from the page (`<meta http-equiv=refresh>`, HTML §4.2.5.3) within 10 seconds; `null` if
 * nowhere.
 */
export function findRefresh({ metas }: Pick<Markup, "metas">, base: URL): URL | null {
  const content = metas.find(({ name }) => name === "refresh")?.content.trim() ?? "";
  const [delay = ""] = /^[\d.]{0,20}/.exec(content) ?? [];
  const rest = content.slice(delay.length);
  if (Number.parseFloat(delay) > maxDelayS || !/^[;,\s]/.test(rest)) return null;
  const stated = rest
    .replace(/^[;,\s]+/, "")
    .replace(/^url\s*=/i, "")
    .trim();
  const quote = stated.startsWith('"') || stated.startsWith("'") ? stated.slice(0, 1) : "";
  return tryParseUrl(quote === "" ? stated : stated.slice(1).split(quote, 1)[0], base);
}
