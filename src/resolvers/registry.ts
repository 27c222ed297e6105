import { createPageResolver, type PageResolverOptions } from "./page.ts";
import type { Resolver } from "./resolver.ts";
import { createStubResolver } from "./stub.ts";

export type ResolverDeps = Pick<PageResolverOptions, "client" | "pageMaxBytes">;

/** Every resolver by its name, one line each. */
const resolvers: Readonly<Record<string, (deps: ResolverDeps) => Resolver>> = {
  page: createPageResolver,
  stub: createStubResolver,
};

/**
 * Creates the resolver that is called `name`.
 *
 * @throws Error that names RESOLVER, the known names and the value.
 */
export function openResolver(name: string, deps: ResolverDeps): Resolver {
  const create = Object.hasOwn(resolvers, name) ? resolvers[name] : undefined;
  if (create !== undefined) return create(deps);
  const known = Object.keys(resolvers).join(", ");
  throw new Error(`RESOLVER must be one of ${known}, got ${JSON.stringify(name)}`);
}
