import type { BaseLogger } from "pino";

const levels = ["debug", "info", "warn", "error"] as const;

type TestLogger = Pick<BaseLogger, (typeof levels)[number]>;

/** With its `level` and `msg`. */
export type LogLine = Record<string, unknown>;

/** Creates a logger that keeps its lines, and calls `onLine` after each. */
export function createTestLog(onLine: () => void = () => {}) {
  const log: LogLine[] = [];
  const writeAt =
    (level: string) =>
    (...[first, msg]: [object, string] | [string]) => {
      log.push(typeof first === "string" ? { level, msg: first } : { level, ...first, msg });
      onLine();
    };
  const logger = Object.fromEntries(levels.map((level) => [level, writeAt(level)])) as unknown as TestLogger;
  return { log, logger };
}
