/** What the benchmarks use of the packages in `bench/package.json`, so that `tsc` works without them. */

declare module "autocannon" {
  interface Run extends PromiseLike<{ errors: number; timeouts: number; non2xx: number }> {
    on(event: "response", listener: (client: unknown, status: number, bytes: number, ms: number) => void): void;
  }
  export default function autocannon(options: {
    url: string;
    connections: number;
    /** Seconds. */
    duration: number;
    method: string;
    headers: Record<string, string>;
    body?: string;
  }): Run;
}

declare module "open-graph-scraper" {
  export default function ogs(options: { html: string }): Promise<{ result: unknown }>;
}

declare module "unfurl.js" {
  export function unfurl(
    url: string,
    options: { oembed: boolean; fetch?: (url: string) => Promise<Response> },
  ): Promise<unknown>;
}

declare module "metascraper" {
  type Scrape = (page: { url: string; html: string }) => Promise<unknown>;
  export default function metascraper(rules: readonly object[]): Scrape;
}

declare module "metascraper-*" {
  export default function rules(): object;
}

declare module "metascraper-video" {
  export default function rules(options: MetascraperOptions): object;
}

declare module "metascraper-audio" {
  export default function rules(options: MetascraperOptions): object;
}

interface MetascraperOptions {
  /** Loads the document at an iframe's URL. */
  getIframe(url: string, dom: { load(html: string): unknown }): Promise<unknown>;
}
