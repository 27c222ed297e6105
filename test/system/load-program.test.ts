import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeFolder } from "../folder.ts";

const loader = new URL("../../src/system/load-program.js", import.meta.url).href;

/** Allocates objects in one place, and keeps them. */
const allocate = `
  const kept = [];
  const make = (n) => ({ n, next: [n, n + 1], more: { n } });
  for (let round = 0; round < 10; round += 1) {
    for (let n = 0; n < 40_000; n += 1) kept.push(make(n));
    await new Promise(setImmediate);
  }`;

test.each([
  ["a program that is loaded allocates nothing in the old generation", true],
  ["others come to allocate there what lives long", false],
])("%s", (_, isLoaded) => {
  const folder = makeFolder();
  writeFileSync(join(folder, "program.mjs"), "");
  const load = `
    import { loadProgram } from ${JSON.stringify(loader)};
    await loadProgram(new URL("program.mjs", import.meta.url));`;
  const main = join(folder, "main.mjs");
  writeFileSync(main, isLoaded ? load + allocate : allocate);
  const traced = execFileSync(process.execPath, ["--trace-pretenuring-statistics", main], { encoding: "utf8" });
  expect(traced === "").toBe(isLoaded);
});
