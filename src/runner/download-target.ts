import { isDeepStrictEqual } from "node:util";
import type { Download } from "../engines/engine.ts";
import { ServiceError } from "../model/errors.ts";
import type { FormatChoice } from "./choose-format.ts";
import type { ResolvedPage } from "./resolve-page.ts";

/** What is downloaded, and the page that lists it. */
export interface Target {
  page: ResolvedPage;
  choice: FormatChoice;
}

export interface DownloadTargetDeps {
  download(target: Target): Promise<Download>;
  /** Resolves the page again and finds the same formats on it. */
  refresh(before: Target): Promise<Target>;
  /** Bytes on the disk. */
  readonly bytes: number;
}

/** A server that expires its URLs after a few bytes must not keep a run busy for ever. */
const maxRefreshes = 20;

/**
 * Downloads a target. If the server refuses or no longer knows one of its URLs, which may have expired, the
 * page is resolved again: once, and again whenever there are more bytes than at the refusal before, at most
 * 20 times.
 *
 * @throws the error of `download` if URLs without new bytes are refused again, or are the same as before;
 * errors of `refresh`
 */
export async function downloadTarget(
  first: Target,
  deps: DownloadTargetDeps,
): Promise<{ target: Target; download: Download }> {
  let target = first;
  for (let refreshes = 0; ; refreshes += 1) {
    const bytesBefore = deps.bytes;
    try {
      return { target, download: await deps.download(target) };
    } catch (error) {
      const hasProgressed = deps.bytes > bytesBefore;
      const isWorthwhile = hasProgressed || refreshes === 0;
      if (!mayHaveExpired(error) || !isWorthwhile || refreshes === maxRefreshes) throw error;
      const fresh = await deps.refresh(target);
      if (!hasProgressed && isDeepStrictEqual(fresh.choice, target.choice)) throw error;
      target = fresh;
    }
  }
}

/** Statuses of servers for a URL whose token has expired. */
const expiredStatuses: ReadonlySet<number | undefined> = new Set([401, 403, 404, 410]);

function mayHaveExpired(error: unknown): boolean {
  return error instanceof ServiceError && expiredStatuses.has(error.upstreamStatus);
}
