import { type LinkedText, type LinkReader, resolveLinks } from "../../../manifests/dash/links.ts";
import type { Manifest } from "../../../manifests/manifest.ts";
import type { ReadContext, Reader } from "./reader.ts";

interface MpdContext extends ReadContext, LinkReader {
  reader: Reader;
}

/**
 * Returns what an MPD lists, after its links to remote elements are resolved.
 *
 * Rejects with the errors of `resolveLinks` and `reader`.
 */
export async function readMpd(mpd: LinkedText, context: MpdContext): Promise<Manifest> {
  const text = await resolveLinks(mpd, context);
  return context.reader.read({ kind: "dash", url: mpd.url }, [Buffer.from(text)], context);
}
