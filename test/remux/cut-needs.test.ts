import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { u32, u32Table } from "../../src/remux/mp4/boxes.ts";
import { samplesOfPart } from "../../src/remux/mp4/cut-needs.ts";
import { makeFolder } from "../folder.ts";
import { buildMp4 } from "../media/hostile-mp4.ts";

it("the samples of hours of audio are found, each of which is apart from the next one", () => {
  const count = 300_000;
  const path = join(makeFolder(), "long.mp4");
  const offsets = Uint32Array.from({ length: count }, (_, index) => (index % 2 === 0 ? 100 : 200));
  const chunks = Buffer.concat([u32(count), u32Table(offsets)]);
  const sizes = u32(1, count);
  writeFileSync(
    path,
    buildMp4({ codec: "sowt", sizes, durations: u32(1, count, 1024), runs: u32(1, 1, 1, 1), chunks }),
  );
  const whole = { ranges: [{ startS: 0, endS: Infinity }], kinds: ["audio"], zeroS: null } as const;
  const needs = samplesOfPart(path, { ...whole, isThere: () => true });
  expect(needs).toMatchObject({
    spans: [
      { start: 100, end: 102 },
      { start: 200, end: 202 },
    ],
    isWhole: true,
  });
});
