import type { BaseLogger } from "pino";
import { logFieldsOf } from "../model/errors.ts";

/**
 * Creates a function that returns the result of `work`, or undefined if it fails. Logs one line when it
 * starts to fail, and one when it works again.
 */
export function logOutages(
  logger: Pick<BaseLogger, "error" | "info">,
  messages: { failed: string; restored: string },
): <T>(work: () => Promise<T>) => Promise<T | undefined> {
  let sinceMs: number | undefined;
  return async (work) => {
    try {
      const result = await work();
      if (sinceMs !== undefined) logger.info({ ms: Math.round(performance.now() - sinceMs) }, messages.restored);
      sinceMs = undefined;
      return result;
    } catch (err) {
      if (sinceMs === undefined) logger.error(logFieldsOf(err), messages.failed);
      sinceMs ??= performance.now();
      return undefined;
    }
  };
}
