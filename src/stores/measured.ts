import { ServiceError } from "../model/errors.ts";
import type { TaskStore } from "./store.ts";

export const storeMethods = [
  "create",
  "reuse",
  "grow",
  "retryMembers",
  "get",
  "list",
  "update",
  "delete",
  "claim",
  "heartbeat",
  "ownMembers",
  "storedFiles",
  "count",
  "ping",
] as const satisfies readonly (keyof TaskStore)[];
type StoreMethod = (typeof storeMethods)[number];

/** Called after each call: how long it took, and whether the store itself failed. */
export type StoreObserver = (method: StoreMethod, seconds: number, hasFailed: boolean) => void;

/** Returns a store that behaves as `store` does and reports its calls; closing it closes `store`. */
export function measureStore(store: TaskStore, observe: StoreObserver): TaskStore {
  function measure<Args extends unknown[], Result>(method: StoreMethod, call: (...args: Args) => Promise<Result>) {
    return async (...args: Args): Promise<Result> => {
      const startMs = performance.now();
      let hasFailed = false;
      try {
        return await call(...args);
      } catch (error) {
        hasFailed = isFailure(error);
        throw error;
      } finally {
        observe(method, (performance.now() - startMs) / 1000, hasFailed);
      }
    };
  }

  const calls = storeMethods.map((method) => [
    method,
    measure(method, store[method] as (...args: unknown[]) => Promise<unknown>),
  ]);
  return { ...store, ...(Object.fromEntries(calls) as Pick<TaskStore, StoreMethod>) };
}

/** A refusal by the contract's rules is none; `retryAfterS` means that the queue is full. */
function isFailure(error: unknown): boolean {
  if (!(error instanceof ServiceError)) return true;
  const { code, retryAfterS } = error;
  return code === "internal" || (code === "unavailable" && retryAfterS === undefined);
}
