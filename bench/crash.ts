import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crashRepeatedly } from "../test/process/crash.ts";

/** The long form of the crash test: 20 kills while 50 clients POST. */
const dataDir = mkdtempSync(join(tmpdir(), "unreel-crash-"));
try {
  const report = await crashRepeatedly({ dataDir, kills: 20, clients: 50, perRound: 2000 });
  console.log(JSON.stringify(report));
  process.exitCode = report.lost === 0 && report.duplicated === 0 ? 0 : 1;
} finally {
  rmSync(dataDir, { recursive: true });
}
