import type { Engine, EngineDeps, EngineShared } from "./engine.ts";
import { createNativeEngine } from "./native/native-engine.ts";

type Options = EngineDeps & EngineShared;

/** Register a new engine here. */
const engines: Readonly<Record<string, (options: Options) => Engine>> = { native: createNativeEngine };

/** @throws Error that names ENGINE, the known names and the value, for an unknown `name`. */
export function openEngine(name: string, options: Options): Engine {
  const create = Object.hasOwn(engines, name) ? engines[name] : undefined;
  if (create !== undefined) return create(options);
  const known = Object.keys(engines).join(", ");
  throw new Error(`ENGINE must be one of ${known}, got ${JSON.stringify(name)}`);
}
