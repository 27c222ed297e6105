import { Value } from "@sinclair/typebox/value";
import { ServiceError } from "../model/errors.ts";
import { type DownloadFormat, PageInfo } from "../model/page-info.ts";
import type { Resolver } from "../resolvers/resolver.ts";
import type { Task } from "../model/task.ts";

/** A page with what only its download needs. */
export type ResolvedPage = Omit<PageInfo, "formats"> & { formats: DownloadFormat[] };

/**
 * Resolves a task's page for its download.
 *
 * @throws ServiceError of the resolver; `no_media` if it does not look for formats; `signal.reason`
 */
export async function resolvePage(
  task: Task,
  resolver: Resolver,
  signal: AbortSignal,
): Promise<ResolvedPage> {
  const needsHeights = task.options.max_height !== undefined;
  const context = { signal, forDownload: true, needsHeights };
  const page: unknown = await resolver.resolve(new URL(task.url), context);
  signal.throwIfAborted();
  if (Value.Check(PageInfo, page)) return page;
  throw new ServiceError(
    "no_media",
    `there is no format to download: the resolver ${resolver.name} does not look for any`,
  );
}

/** Request headers that authenticate somebody. */
const secretHeaders: ReadonlySet<string> = new Set(["authorization", "cookie"]);

/** Returns what may be stored and shown: nothing beyond `PageInfo`, no header that authenticates somebody. */
export function publicInfo(page: ResolvedPage): PageInfo {
  const formats = page.formats.map(({ http_headers, ...format }) => ({
    ...format,
    ...(http_headers && { http_headers: withoutSecrets(http_headers) }),
  }));
  return Value.Clean(PageInfo, { ...page, formats }) as PageInfo;
}

function withoutSecrets(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !secretHeaders.has(name.toLowerCase())),
  );
}
