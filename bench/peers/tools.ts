import { ServiceError } from "../../src/model/errors.ts";
import type { HttpClient } from "../../src/net/client.ts";
import type { SavedPage } from "./pages.ts";

/** Reads one page; `served` is its URL on the page server. */
type Tool = (page: SavedPage, served: string) => Promise<unknown>;

export type ToolName = keyof typeof tools;

/** Every tool, used as documented and loaded on demand; none fetches from the network. */
export const tools = {
  /** From saved bytes to PageInfo, including decoding, as in `GET /info`. */
  async unreel() {
    const { createPageResolver } = await import("../../test/resolvers/page/local-reader.ts");
    return ({ url, bytes, contentType }) => {
      const client = createSavedClient(url, bytes, contentType);
      return createPageResolver({ client, pageMaxBytes: bytes.length }).resolve(new URL(url), live());
    };
  },

  /** The same with the product's HTTP client. */
  async "unreel, loopback"() {
    const { createPageResolver } = await import("../../test/resolvers/page/local-reader.ts");
    const { createHttpClient } = await import("../../src/net/http/http-client.ts");
    const client = createHttpClient({ allowNetworks: ["127.0.0.0/8"], perHost: 1 });
    return ({ bytes }, served) => {
      const page = new URL(served);
      const pageClient = onlyOrigin(client, page.origin);
      const resolver = createPageResolver({ client: pageClient, pageMaxBytes: bytes.length });
      return resolver.resolve(page, live());
    };
  },

  async "unfurl.js"() {
    const { unfurl } = await import("unfurl.js");
    return ({ url, bytes, contentType }) => {
      const headers = { "content-type": contentType };
      const fetch = async () => new Response(bytes, { headers });
      return unfurl(url, { oembed: false, fetch });
    };
  },

  async "unfurl.js, loopback"() {
    const { unfurl } = await import("unfurl.js");
    return (_page, served) => unfurl(served, { oembed: false });
  },

  async metascraper() {
    const { default: metascraper } = await import("metascraper");
    const scrape = metascraper(await loadRules());
    return ({ url, html }) => scrape({ url, html });
  },

  async "open-graph-scraper"() {
    const { default: ogs } = await import("open-graph-scraper");
    return ({ html }) => ogs({ html });
  },
} satisfies Record<string, () => Promise<Tool>>;

const live = () => ({ signal: new AbortController().signal });

/** Responds to the page's URL with the saved bytes, in chunks as a socket delivers them, and to no other. */
function createSavedClient(page: string, bytes: Uint8Array, contentType: string): HttpClient {
  const { href } = new URL(page);
  return {
    async get(url) {
      if (url.href !== href) throw notSavedError(url);
      const headers = new Map([["content-type", contentType]]);
      return { url, status: 200, headers, body: inChunks(bytes), release() {} };
    },
    close: async () => {},
  };
}

async function* inChunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

/** Refuses requests to other origins (oEmbed, manifests). */
function onlyOrigin(client: HttpClient, origin: string): HttpClient {
  return {
    get: async (url, options) => {
      if (url.origin !== origin) throw notSavedError(url);
      return client.get(url, options);
    },
    close: () => client.close(),
  };
}

function notSavedError(url: URL): ServiceError {
  return new ServiceError("upstream_unreachable", `${url.href} is not among the saved pages`);
}

/**
 * Loads the rules for video pages. Iframes count as empty, and the YouTube rule that looks up thumbnails
 * is left out: both would use the network.
 */
async function loadRules(): Promise<object[]> {
  const getIframe = async (_url: string, dom: { load(html: string): unknown }) => dom.load("");
  const rules = [
    (await import("metascraper-author")).default(),
    (await import("metascraper-date")).default(),
    (await import("metascraper-description")).default(),
    (await import("metascraper-image")).default(),
    (await import("metascraper-lang")).default(),
    (await import("metascraper-logo")).default(),
    (await import("metascraper-publisher")).default(),
    (await import("metascraper-title")).default(),
    (await import("metascraper-url")).default(),
    (await import("metascraper-video")).default({ getIframe }),
    (await import("metascraper-audio")).default({ getIframe }),
  ];
  return [{ ...(await import("metascraper-youtube")).default(), image: [] }, ...rules];
}
