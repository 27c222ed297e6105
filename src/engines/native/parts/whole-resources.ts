import { open } from "node:fs/promises";
import { basename } from "node:path";
import { withDiskError } from "../../../files/disk-error.ts";
import { noFollow } from "../../../files/no-follow.ts";
import { isUpstreamError } from "../../../model/errors.ts";
import { sizeOf, tooShortError } from "./extent.ts";
import { assertEnd } from "./fetch-part.ts";
import type { FetchedPart, Part } from "./stored-part.ts";

type Fetch = (part: Part) => Promise<FetchedPart>;

/** Ranges of resources of which a server sends no ranges: each resource is fetched once, whole, and they are cut from it. */
export class WholeResources {
  /** By URL. */
  readonly #fetched = new Map<string, Promise<FetchedPart>>();
  /** By name and URL: the file of a part is not written while it is read. */
  readonly #cut = new Map<string, Promise<FetchedPart>>();

  /**
   * Fetches a part, or cuts it from its resource once the server has refused a range of that, or sent more.
   *
   * @param hasBegun An earlier run has fetched bytes of the resource.
   * @throws what `fetch` rejects with; ServiceError `upstream_invalid` if the resource is too short
   */
  async fetch(part: Part, wholeName: string, { fetch, hasBegun }: { fetch: Fetch; hasBegun: boolean }) {
    const { href } = part.url;
    if (!hasBegun && !this.#fetched.has(href)) {
      try {
        return await fetch(part);
      } catch (error) {
        if (!isRangeRefusal(error, part)) throw error;
        const isThere = await this.#fetchWhole(part, wholeName, fetch).catch(rethrowUnlessRefused);
        if (isThere === null) throw error;
      }
    }
    const whole = await this.#fetchWhole(part, wholeName, fetch);
    return this.#cut.getOrInsertComputed(`${part.name} ${href}`, () => cut(part, whole));
  }

  async #fetchWhole({ url }: Part, name: string, fetch: Fetch): Promise<FetchedPart> {
    const { href } = url;
    try {
      return await this.#fetched.getOrInsertComputed(href, () => fetch({ name, url, range: null, isToCut: true }));
    } catch (error) {
      this.#fetched.delete(href);
      throw error;
    }
  }
}

/** Statuses of servers that refuse ranges, and what they have as a whole they may send; 200: they do so. */
const refusals: ReadonlySet<number | undefined> = new Set([200, 400, 403, 405, 406, 412, 416, 501]);

function isRangeRefusal(error: unknown, { range }: Part): boolean {
  if (!isUpstreamError(error)) return false;
  const { upstreamStatus, resourceBytes = Infinity } = error;
  return refusals.has(upstreamStatus) && resourceBytes > (range?.offset ?? 0);
}

function rethrowUnlessRefused(error: unknown): null {
  if (isUpstreamError(error) && !error.retryable) return null;
  throw error;
}

/** Writes the part into a file of its own, which no journal records: a later run does so again. */
async function cut(part: Part, whole: FetchedPart): Promise<FetchedPart> {
  const { name, range } = part;
  const size = sizeOf(range, whole.size);
  if (range === null || size === undefined || size === null) throw tooShortError(part, whole.size);
  const path = `${whole.path}-${name}`;
  const [start, end] = [range.offset, range.offset + size - 1];
  await withDiskError(`write ${basename(path)} in DATA_DIR`, async () => {
    await using from = await open(whole.path, noFollow.read);
    await using to = await open(path, noFollow.overwrite);
    if (size > 0) await to.writeFile(from.createReadStream({ start, end, autoClose: false }));
  });
  const { representation } = whole;
  assertEnd({ path, size, representation: representation && { ...representation, total: whole.size } }, part);
  return { path, size, representation };
}
