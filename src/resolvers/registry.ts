import type { HttpClient } from "../net/client.ts";
import { createPageResolver } from "./page.ts";
import type { Resolver } from "./resolver.ts";
import { createStubResolver } from "./stub.ts";

/** What a resolver may be built from. */
export interface ResolverDeps {
  client: HttpClient;
  pageMaxBytes: number;
}

/** A new resolver is one line here. */
const resolvers: Readonly<Record<string, (parts: ResolverDeps) => Resolver>> = {
  page: createPageResolver,
  stub: createStubResolver,
};

/** @throws Error that names RESOLVER, the known names and the value. */
export function openResolver(name: string, parts: ResolverDeps): Resolver {
  const create = Object.hasOwn(resolvers, name) ? resolvers[name] : undefined;
  if (create !== undefined) return create(parts);
  const known = Object.keys(resolvers).join(", ");
  throw new Error(`RESOLVER must be one of ${known}, got ${JSON.stringify(name)}`);
}
