import type { BaseLogger } from "pino";

/** Creates a logger that keeps its lines. */
export function createTestLog() {
  const log: object[] = [];
  const write = (fields: object, msg: string) => void log.push({ ...fields, msg });
  return { log, logger: { info: write, warn: write, error: write } as TestLogger };
}

type TestLogger = Pick<BaseLogger, "info" | "warn" | "error">;
