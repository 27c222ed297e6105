import { openAutoResolver } from "./auto.ts";
import { createPageResolver, type PageResolverOptions } from "./page/page-resolver.ts";
import { measureResolver, type ResolverObserver } from "./wrappers.ts";
import type { Resolver } from "./resolver.ts";
import { createStubResolver } from "./stub.ts";
import { openYtDlpResolver, type YtDlpResolverDeps } from "./ytdlp/ytdlp-resolver.ts";

type ResolverDeps = Pick<PageResolverOptions, "client" | "reader" | "pageMaxBytes"> &
  YtDlpResolverDeps & {
    /** Called after each call of the resolver, and of those that it asks. */
    onResolved?: ResolverObserver | undefined;
  };

type Open = (deps: ResolverDeps) => Resolver | Promise<Resolver | undefined>;

/** Every resolver by its name, one line each. */
const resolvers: Readonly<Record<string, Open>> = {
  auto: openAutoResolver,
  page: createPageResolver,
  stub: createStubResolver,
  "yt-dlp": openYtDlpResolver,
};

/**
 * Opens the resolver that is called `name`.
 *
 * @throws Error that names RESOLVER, the known names and the value, or another setting; also if the resolver
 * needs a program that the machine does not have
 */
export async function openResolver(name: string, deps: ResolverDeps): Promise<Resolver> {
  const open = Object.hasOwn(resolvers, name) ? resolvers[name] : undefined;
  const known = Object.keys(resolvers).join(", ");
  if (open === undefined) {
    throw new Error(`RESOLVER must be one of ${known}, got ${JSON.stringify(name)}`);
  }
  const resolver = await open(deps);
  if (resolver !== undefined) return measureResolver(resolver, deps.onResolved);
  throw new Error(`RESOLVER must be auto or page if ${name} is neither on PATH nor named by YTDLP, got "${name}"`);
}
