import { Type } from "@sinclair/typebox";
import type { Resolver } from "./resolver.ts";

/**
 * TODO(spec): the written specification shows no field of the info response. This schema stays open
 * until it does; a resolver that knows its fields brings its own schema (see `page/page-resolver.ts`).
 */
const StubInfo = Type.Object(
  { url: Type.String(), resolver: Type.String() },
  { title: "Info", additionalProperties: true },
);

/** Creates a resolver that fetches nothing and returns only the URL. */
export function createStubResolver(): Resolver<typeof StubInfo> {
  return {
    name: "stub",
    output: StubInfo,
    async resolve(url, { signal }) {
      signal.throwIfAborted();
      return { url: url.href, resolver: "stub" };
    },
    close: async () => {},
  };
}
