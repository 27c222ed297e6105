import type { BaseLogger } from "pino";

/** Creates a logger that keeps its lines. */
export function createTestLog() {
  const log: object[] = [];
  const write = (...[first, msg]: [object, string] | [string, string?]) =>
    void log.push(typeof first === "string" ? { msg: first } : { ...first, msg });
  return { log, logger: { info: write, warn: write, error: write } as TestLogger };
}

type TestLogger = Pick<BaseLogger, "info" | "warn" | "error">;
