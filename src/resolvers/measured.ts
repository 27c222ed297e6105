import type { Resolver } from "./resolver.ts";

type ResolveOutcome = "succeeded" | "failed" | "aborted";

/** Called after each call of a resolver; `name` is the resolver's. */
export type ResolverObserver = (name: string, outcome: ResolveOutcome, seconds: number) => void;

/** Returns a resolver that behaves as `resolver` does and reports its calls; closing it closes `resolver`. */
export function measureResolver<R extends Resolver>(resolver: R, observe: ResolverObserver | undefined): R {
  if (observe === undefined) return resolver;
  return {
    ...resolver,
    async resolve(url: URL, context: Parameters<R["resolve"]>[1]) {
      const startMs = performance.now();
      const report = (outcome: ResolveOutcome) => observe(resolver.name, outcome, (performance.now() - startMs) / 1000);
      try {
        const info = await resolver.resolve(url, context);
        report("succeeded");
        return info;
      } catch (error) {
        report(context.signal.aborted ? "aborted" : "failed");
        throw error;
      }
    },
  };
}
