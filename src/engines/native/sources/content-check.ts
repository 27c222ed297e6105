import { readFile } from "node:fs/promises";
import { isUpstreamError, upstreamAs } from "../../../model/errors.ts";
import { openFile, readAt } from "../../../remux/open-file.ts";
import type { FetchedPart, Part } from "../parts/stored-part.ts";

/**
 * Finds out whether a live stream has changed the init section under its URL: its server has restarted with another encoder, and the
 * playlist does not say so, which it must (RFC 8216bis §4.4.4.3, §4.4.4.5). What came after is described by none that was fetched.
 */
export class InitCheck {
  readonly #fetchPart: (part: Part) => Promise<FetchedPart>;
  #last: { part: Part; path: string } | null = null;

  constructor(fetchPart: (part: Part) => Promise<FetchedPart>) {
    this.#fetchPart = fetchPart;
  }

  /** Notes the latest init section. */
  add(part: Part, path: string): void {
    this.#last = { part, path };
  }

  /** Fetches it again; returns false also if the server no longer has it. @throws what `fetchPart` rejects with for other reasons than the server */
  async hasChanged(): Promise<boolean> {
    if (this.#last === null) return false;
    const { part, path } = this.#last;
    const again = await this.#fetchPart(withNewName(part)).catch(upstreamAs(null));
    if (again === null) return false;
    const [before, now] = [descriptionsIn(path), descriptionsIn(again.path)];
    return now.length > 0 && !now.equals(before);
  }
}

/** Whether a server now has other media under the URL of a part that was fetched; false also if it no longer has any. @throws as `hasChanged` */
export async function hasOtherMedia(part: Part, fetchPart: (part: Part) => Promise<FetchedPart>): Promise<boolean> {
  try {
    const [before, now] = [await fetchPart(part), await fetchPart(withNewName(part))];
    return before.size !== now.size || !(await readFile(before.path)).equals(await readFile(now.path));
  } catch (error) {
    if (isUpstreamError(error)) return false;
    throw error;
  }
}

/** Returns the part under another name: what is stored under its own name would not be fetched again. */
const withNewName = (part: Part): Part => ({ ...part, name: `${part.name}-at-${Date.now()}` });

/** Returns the sample descriptions (`stsd`, ISO/IEC 14496-12 §8.5.2) of an init section: a packager may write other times each time. */
function descriptionsIn(path: string): Buffer {
  using file = openFile(path);
  const bytes = readAt(file, 0, file.size);
  const found: Buffer[] = [];
  for (let at = bytes.indexOf("stsd"); at >= 4; at = bytes.indexOf("stsd", at + 4)) {
    found.push(bytes.subarray(at, at - 4 + bytes.readUInt32BE(at - 4)));
  }
  return Buffer.concat(found);
}
