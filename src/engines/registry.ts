import type { Engine } from "./engine.ts";
import { createNativeEngine } from "./native.ts";

/** What an engine may need. */
export interface EngineDeps {
  /** `ALLOW_NETWORKS`. */
  allowNetworks: string;
  /** Concurrent requests of one download to one host. */
  concurrentFragments: number;
  idleTimeoutMs: number;
  /** Disk space to keep free. */
  minFreeBytes: number;
}

/** Register a new engine here. */
const engines: Readonly<Record<string, (deps: EngineDeps) => Engine>> = {
  native: createNativeEngine,
};

/** @throws Error that names ENGINE, the known names and the value, for an unknown `name`. */
export function openEngine(name: string, deps: EngineDeps): Engine {
  const create = Object.hasOwn(engines, name) ? engines[name] : undefined;
  if (create !== undefined) return create(deps);
  const known = Object.keys(engines).join(", ");
  throw new Error(`ENGINE must be one of ${known}, got ${JSON.stringify(name)}`);
}
