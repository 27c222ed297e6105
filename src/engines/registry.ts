import type { Engine, EngineDeps } from "./engine.ts";
import { createNativeEngine } from "./native.ts";

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
