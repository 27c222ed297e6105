import { setImmediate } from "node:timers/promises";
import { Parser } from "htmlparser2";
import { isUpstreamError, ServiceError } from "../../model/errors.ts";
import { shorten, urlForMessage } from "../../net/http-url.ts";
import { checkLength, invalidManifestError } from "../manifest.ts";
import { createNamespaces, localName, maxLevels } from "./names.ts";
import { resolveSegmentUrl } from "../segments.ts";

/** A document and its URL after redirects. */
export interface LinkedText {
  text: string;
  url: URL;
}

/** Fetches a linked document, at most `maxLinkedBytes`. */
type FetchLinked = (url: URL) => Promise<LinkedText>;

/** Limit of one linked document. */
export const maxLinkedBytes = 1024 * 1024;

const maxLinks = 20;
/**
 * Links of the MPD that are followed at a time; those of a linked document are followed one after the other. Twenty at a time took
 * 45 MiB, most of it in decoders.
 */
const linksAtATime = 4;
/** Links in linked documents: how deep. */
const maxDepth = 3;

/** An xlink:href that stands for no element (ISO/IEC 23009-1 §5.5.3). */
const resolveToZero = "urn:mpeg:dash:resolve-to-zero:2013";

/** Whether an attribute links its element to a remote one: `xlink:href`, whatever the prefix is. */
export function isLink(element: string, attribute: string): boolean {
  // Events are not media.
  return attribute.endsWith(":href") && element !== "EventStream";
}

/**
 * Returns an MPD in which each element with an `xlink:href` is replaced by what the link leads to (ISO/IEC 23009-1 §5.5),
 * now, whatever its `xlink:actuate` says. An element whose link leads nowhere keeps its own content, if it has some.
 * Follows at most 20 links, 3 deep.
 *
 * @throws ServiceError `upstream_invalid` for a link that leads to nothing of the element's name, for more links, and if
 * the MPD gets too long; of `fetchLinked` if it blocks the URL or may succeed later; of `resolveSegmentUrl`
 */
export async function resolveLinks(mpd: LinkedText, fetchLinked: FetchLinked): Promise<string> {
  let linksLeft = maxLinks;
  return expand(mpd, 0);

  async function expand({ text, url }: LinkedText, depth: number): Promise<string> {
    checkLength(text, mpd.url);
    if (!text.includes(":href")) return text;
    const links = await findLinks(text, mpd.url);
    linksLeft -= links.length;
    if (links.length > 0 && (linksLeft < 0 || depth === maxDepth)) {
      const rule = `it must have at most ${maxLinks} links (xlink:href), at most ${maxDepth} deep`;
      throw invalidManifestError(mpd.url, rule);
    }
    let [result, end] = ["", 0];
    const atATime = depth === 0 ? linksAtATime : 1;
    for (let at = 0; at < links.length; at += atATime) {
      const some = links.slice(at, at + atATime);
      const replaced = await Promise.all(some.map((link) => replace(link, { text, url }, depth)));
      for (const [index, link] of some.entries()) {
        result += text.slice(end, link.start) + replaced[index];
        end = link.end;
        checkLength(result, mpd.url);
      }
    }
    return result + text.slice(end);
  }

  async function replace(link: Link, { text, url }: LinkedText, depth: number): Promise<string> {
    if (link.href.trim() === resolveToZero) return "";
    return expand((await fetchElements(link, url)) ?? { text: ownContent(link, text), url }, depth + 1);
  }

  /** Returns null if the link leads nowhere, and the element has content of its own. */
  async function fetchElements(link: Link, base: URL): Promise<LinkedText | null> {
    try {
      const { text, url } = await fetchLinked(resolveSegmentUrl(link.href.trim(), base, mpd.url));
      await checkElements(text, link.name, mpd.url);
      return { text: text.replace(prolog, ""), url };
    } catch (error) {
      if (!isUpstreamError(error) || error.retryable) throw error;
      if (link.hasContent) return null;
      throw leadsNowhereError(link, mpd.url, error);
    }
  }
}

/** Returns the element without its link. */
function ownContent({ start, tagEnd, end }: Link, text: string): string {
  return text.slice(start, tagEnd).replace(linkAttribute, "") + text.slice(tagEnd, end);
}

const linkAttribute = /\s[\w.-]+:href\s*=\s*(?:"[^"]*"|'[^']*')/;

function leadsNowhereError({ name, href }: Link, url: URL, cause: ServiceError): ServiceError {
  const link = `the link of ${name} to ${JSON.stringify(shorten(href, 100))} leads to no such element`;
  const message = `cannot read the manifest at ${urlForMessage(url)}: ${link}: ${shorten(cause.message, 300)}`;
  return new ServiceError("upstream_invalid", message, { cause });
}

/** An element with a link, and where it is in the text. */
interface Link {
  name: string;
  href: string;
  start: number;
  tagEnd: number;
  end: number;
  /** It has child elements. */
  hasContent: boolean;
}

/** Of one element; all of them are parsed at once. */
const maxAttributes = 1_000;

/**
 * Finds the outermost elements with links; links of foreign elements are none of the MPD's.
 *
 * @throws ServiceError `upstream_invalid` for more levels or attributes than the thread has time for
 */
async function findLinks(text: string, url: URL): Promise<Link[]> {
  const links: Link[] = [];
  const namespaces = createNamespaces();
  let open: Link | null = null;
  let depth = 0;
  let openDepth = 0;
  let attributeCount = 0;
  const parser: Parser = new Parser(
    {
      onattribute() {
        attributeCount += 1;
        if (attributeCount > maxAttributes)
          throw invalidManifestError(url, `an element must have at most ${maxAttributes} attributes`);
      },
      onopentag(qualifiedName, attributes) {
        attributeCount = 0;
        depth += 1;
        if (depth > maxLevels) throw tooDeepError(url);
        const isForeign = namespaces.open(qualifiedName, attributes);
        if (open !== null) open.hasContent = true;
        if (open !== null || isForeign) return;
        const name = localName(qualifiedName);
        const [, href] = Object.entries(attributes).find(([attribute]) => isLink(name, attribute)) ?? [];
        if (href === undefined) return;
        const end = parser.endIndex + 1;
        open = { name, href, start: parser.startIndex, tagEnd: end, end, hasContent: false };
        links.push(open);
        openDepth = depth;
      },
      onclosetag() {
        if (open !== null && depth === openDepth) {
          open.end = parser.endIndex + 1;
          open = null;
        }
        namespaces.close();
        depth -= 1;
      },
    },
    { xmlMode: true },
  );
  await parse(parser, text);
  return links;
}

/** @throws ServiceError `upstream_invalid` unless all top elements have this name, and there is one. */
async function checkElements(text: string, name: string, url: URL): Promise<void> {
  const others = new Set<string>();
  let count = 0;
  let depth = 0;
  const parser = new Parser(
    {
      onopentagname(qualifiedName) {
        if (depth === 0) count += 1;
        if (depth === 0 && localName(qualifiedName) !== name) others.add(qualifiedName);
        depth += 1;
        if (depth > maxLevels) throw tooDeepError(url);
      },
      onclosetag: () => (depth -= 1),
    },
    { xmlMode: true },
  );
  await parse(parser, text);
  if (count > 0 && others.size === 0) return;
  throw invalidManifestError(url, `a link of ${name} must lead to such elements`, [...others][0] ?? "nothing");
}

function tooDeepError(url: URL): ServiceError {
  return invalidManifestError(url, `it must be at most ${maxLevels} levels deep`);
}

/** So much is parsed in about a millisecond, UTF-16 code units. */
const stepLength = 128 * 1024;

/** Ends in the iteration of the event loop after that of the last step: of all texts that are parsed at a time, each has one of its own. */
let steps: Promise<unknown> = Promise.resolve();

/** Parses a text, and lets others use the thread in between: all else of an MPD is read in a process of its own. */
async function parse(parser: Parser, text: string): Promise<void> {
  for (let at = 0; at < text.length; at += stepLength) {
    steps = steps.then(() => setImmediate());
    await steps;
    parser.write(text.slice(at, at + stepLength));
  }
  parser.end();
}

/** Byte order mark and XML declaration. */
const prolog = /^\uFEFF?\s*(?:<\?xml[^>]*>)?/;
