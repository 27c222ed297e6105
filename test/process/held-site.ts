import type { MediaFixture } from "../media/media-fixtures.ts";
import type { Site } from "../media/site.ts";
import { startTestSite, type WhenOver } from "../media/test-site.ts";

/** A site that holds back the most of what it has until `release` is called; closed after the test. */
interface HeldSite {
  site: Site;
  release: () => void;
}

/** Holds back all segments but the first of each track. */
export async function startHeldSite(
  { resources }: Pick<MediaFixture, "resources">,
  whenOver?: WhenOver,
): Promise<HeldSite> {
  const site = await startTestSite(new Map(resources), {}, whenOver);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const firsts = new Set<string>();
  const later = [...resources.keys()].filter((path) => {
    const [, folder = "", number] = /^(.*?)(\d+)\.\w+$/.exec(path) ?? [];
    if (number === undefined || firsts.has(folder)) return number !== undefined;
    return firsts.add(folder) === undefined;
  });
  for (const path of later) site.answer(path, (_response, serve) => released.then(serve));
  return { site, release };
}

/** Holds back all but the first bytes of a file. */
export function startHalfSite(
  { resources, entry }: Pick<MediaFixture, "resources" | "entry">,
  half: number,
): Promise<HeldSite> {
  return startHalvesSite(resources, new Map([[entry, half]]));
}

/** Holds back all but the first bytes, so many, of each of these files. */
export async function startHalvesSite(
  resources: MediaFixture["resources"],
  halves: ReadonlyMap<string, number>,
): Promise<HeldSite> {
  const site = await startTestSite(new Map(resources));
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  for (const [path, half] of halves) {
    const { type, body } = resources.get(path)!;
    site.answer(path, async (response, serve, { headers }) => {
      // What reads the page, too, asks for its first bytes alone.
      if (headers.range !== undefined) return serve();
      response.writeHead(200, { "content-type": type, "content-length": body.length, "accept-ranges": "bytes" });
      response.write(body.subarray(0, half));
      await released;
      response.end(body.subarray(half));
    });
  }
  return { site, release };
}
