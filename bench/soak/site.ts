import type { ServerResponse } from "node:http";
import { type MediaFixture, readMediaFixtures } from "../../test/media/media-fixtures.ts";
import { pageAbout } from "../../test/media/pages.ts";
import type { Resources } from "../../test/media/resources.ts";
import { type Site, startSite } from "../../test/media/site.ts";

export interface FaultySite extends AsyncDisposable {
  /** URLs of pages, each with the name of its fixture. */
  pages: { url: string; name: string }[];
  /** How often it failed, cut or stalled. */
  faults: { count: number };
}

/** Serves each media fixture in its own folder; one response in twelve is 500, 429, cut short or missing. */
export async function openFaultySite(random: () => number): Promise<FaultySite> {
  const site = await startSite(new Map());
  const faults = { count: 0 };
  const pages = [...readMediaFixtures().values()].map((fixture, i) => {
    for (const [path, resource] of moved(fixture, i)) {
      site.resources.set(path, resource);
      site.answer(path, (response, serve) => {
        if (random() > 1 / 12) return serve();
        faults.count += 1;
        return fail(response, random);
      });
    }
    const url = site.url(`${i}/watch`);
    site.resources.set(`${i}/watch`, pageAbout(fixture, site.url(`${i}/${fixture.entry}`), "og"));
    return { url, name: fixture.name };
  });
  const pruning = setInterval(() => dropRequests(site), 10_000);
  return {
    pages,
    faults,
    async [Symbol.asyncDispose]() {
      clearInterval(pruning);
      await site.close();
    },
  };
}

function moved({ resources }: MediaFixture, folder: number): Resources {
  return new Map([...resources].map(([path, resource]) => [`${folder}/${path}`, resource]));
}

function fail(response: ServerResponse, random: () => number): void {
  const kind = Math.floor(random() * 4);
  if (kind === 0) response.writeHead(500).end();
  else if (kind === 1) response.writeHead(429, { "retry-after": "1" }).end();
  else if (kind === 2) {
    response.writeHead(200, { "content-length": 10_000 });
    response.write(Buffer.alloc(100), () => response.destroy());
  }
  // Else no response at all.
}

function dropRequests(site: Site): void {
  site.asked.length = 0;
}
