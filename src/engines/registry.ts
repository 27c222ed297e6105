import type { Engine } from "./engine.ts";
import { createNativeEngine } from "./native.ts";

/** What an engine may be built from. */
export interface EngineDeps {
  /** As `ALLOW_NETWORKS`. */
  allowNetworks: string;
  /** Requests at a time of one download to one host. */
  concurrentFragments: number;
  idleTimeoutMs: number;
  /** Room to leave on the disk. */
  minFreeBytes: number;
}

/** A new engine is one line here. */
const engines: Readonly<Record<string, (parts: EngineDeps) => Engine>> = {
  native: createNativeEngine,
};

/** @throws Error that names ENGINE, the known names and the value. */
export function openEngine(name: string, parts: EngineDeps): Engine {
  const create = Object.hasOwn(engines, name) ? engines[name] : undefined;
  if (create !== undefined) return create(parts);
  const known = Object.keys(engines).join(", ");
  throw new Error(`ENGINE must be one of ${known}, got ${JSON.stringify(name)}`);
}
