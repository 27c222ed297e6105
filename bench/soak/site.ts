import type { ServerResponse } from "node:http";
import { type MediaFixture, readExhibits } from "../../test/media/media-fixtures.ts";
import { pageAbout } from "../../test/media/pages.ts";
import type { Resources } from "../../test/media/resources.ts";
import { type Site, startSite } from "../../test/media/site.ts";

export interface FaultySite extends AsyncDisposable {
  /** Addresses of pages, each with its exhibit's name. */
  pages: { url: string; name: string }[];
  /** How often it failed, cut or stalled. */
  faults: { count: number };
}

/** All exhibits under folders of their own; one answer in twelve is none, cut short, late or refused. */
export async function openFaultySite(random: () => number): Promise<FaultySite> {
  const site = await startSite(new Map());
  const faults = { count: 0 };
  const pages = [...readExhibits().values()].map((exhibit, i) => {
    for (const [path, resource] of moved(exhibit, i)) {
      site.resources.set(path, resource);
      site.answer(path, (response, serve) => {
        if (random() > 1 / 12) return serve();
        faults.count += 1;
        return fail(response, random);
      });
    }
    const url = site.url(`${i}/watch`);
    site.resources.set(`${i}/watch`, pageAbout(exhibit, site.url(`${i}/${exhibit.entry}`), "og"));
    return { url, name: exhibit.name };
  });
  const forget = setInterval(() => forgetRequests(site), 10_000);
  return {
    pages,
    faults,
    async [Symbol.asyncDispose]() {
      clearInterval(forget);
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
  // Else no answer at all.
}

function forgetRequests(site: Site): void {
  site.asked.length = 0;
}
