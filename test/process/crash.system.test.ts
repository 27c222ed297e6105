import { expect, it } from "vitest";
import { makeFolder } from "../folder.ts";
import { crashRepeatedly } from "./crash.ts";

it("loses no acknowledged task and stores none twice when it is killed while 50 clients POST", async () => {
  const report = await crashRepeatedly({ dataDir: makeFolder(), kills: 3, clients: 50, perRound: 300 });
  expect(report).toMatchObject({ kills: 3, lost: 0, duplicated: 0 });
  expect(report.acknowledged).toBeGreaterThanOrEqual(900);
  expect(report.unacknowledged).toBeGreaterThan(0);
});
