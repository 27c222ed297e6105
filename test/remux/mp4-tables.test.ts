import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fullBox, u32 } from "../../src/remux/mp4/boxes.ts";
import { checkSampleTables } from "../../src/remux/mp4/read/check-tables.ts";
import { numbersIn } from "../../src/remux/mp4/read/number-source.ts";
import { buildMp4, emptyRun, maxCount, type Tables } from "../media/hostile-mp4.ts";

const check = (bytes: Uint8Array) => checkSampleTables(numbersIn(bytes));

const hostile: [what: string, tables: Tables, message: string][] = [
  ["four billion samples of one size", { sizes: u32(2, maxCount) }, "4294967295 samples of 2 bytes"],
  ["more sizes than fit in their box", { sizes: u32(0, 1000, 1) }, '"stsz" is too short'],
  ["four billion durations", { durations: u32(1, maxCount, 1) }, '"stts" is for 4294967295'],
  ["four billion compositions", { compositions: u32(1, maxCount, 5) }, '"ctts" is for 4294967295'],
  [
    "a thousand times four billion compositions",
    { compositions: u32(1000, ...Array.from({ length: 1000 }, () => [maxCount, 5]).flat()) },
    '"ctts" is for 4294967295000',
  ],
  ["more compositions than fit in their box", { compositions: u32(9, 1, 1) }, '"ctts" is too short'],
  [
    "a run of PCM that begins at chunk 2³²−1",
    { codec: "sowt", runs: u32(2, 1, 10, 1, maxCount, 1, 1) },
    '"stsc" leads to chunk 4294967295',
  ],
  ["runs that go back", { runs: u32(2, 1, 1, 1, 1, 9, 1), chunks: u32(2, 48, 52) }, '"stsc" leads'],
  [
    "runs of chunks of which there is none",
    { runs: u32(2, 1, 10, 1, 5, 1, 1), chunks: u32(0) },
    "10 of 10 samples are in no chunk",
  ],
  ["a run that begins long after the last chunk", { runs: u32(2, 1, 10, 1, 1_002, 1, 1) }, "there are 1"],
  ["samples behind the end of the file", { chunks: u32(1, 9_000) }, "chunk 1 ends at 9040"],
  ["samples in no chunk", { runs: u32(1, 1, 4, 1) }, "6 of 10 samples are in no chunk"],
  ["samples without a byte", { sizes: u32(0, 10, ...Array(10).fill(0)) }, "its 10 samples have no bytes"],
  ["two tables of one kind", { more: [fullBox("stsz", 0, 0, u32(4, 10))] }, "two tables of sizes"],
  ["a sync table that is too short", { more: [fullBox("stss", 0, 0, u32(maxCount))] }, '"stss" is too'],
  ["a run of four billion samples", { after: [emptyRun(maxCount)] }, "a fragment has over 1048576"],
  [
    "many runs that are each just possible",
    { after: Array.from({ length: 10 }, () => emptyRun(1_000)) },
    "bytes have over",
  ],
];

describe("an MP4's sample tables", () => {
  it("are accepted if they are true", () => {
    check(buildMp4());
    check(buildMp4({ compositions: u32(2, 4, 512, 6, 0), sizes: u32(0, 10, ...Array(10).fill(4)) }));
    check(buildMp4({ codec: "sowt", runs: u32(2, 1, 6, 1, 2, 4, 1), chunks: u32(2, 48, 72) }));
    check(buildMp4({ sizes: u32(0, 0), durations: u32(0), runs: u32(0), chunks: u32(0) }));
  });

  it("are accepted if only some samples have no byte, or fragments have the media", () => {
    check(buildMp4({ sizes: u32(0, 10, 4, ...Array(9).fill(0)) }));
    check(buildMp4({ sizes: u32(0, 10, ...Array(10).fill(0)), after: [emptyRun(10)] }));
  });

  it("are accepted with durations of a few samples too many or too few, as muxers write them", () => {
    check(buildMp4({ durations: u32(1, 11, 512) }));
    check(buildMp4({ durations: u32(1, 9, 512) }));
  });

  it("are accepted with runs that begin a few chunks after the last one, as muxers write them", () => {
    check(buildMp4({ runs: u32(2, 1, 10, 1, 2, 1, 1) }));
    check(buildMp4({ runs: u32(3, 1, 10, 1, 2, 1, 1, 9, 1, 1) }));
  });

  it("are accepted in all media of other programs", () => {
    const folder = new URL("../media/files/", import.meta.url);
    const names = readdirSync(folder).filter((name) => /\.(mp4|m4a)$/.test(name));
    expect(names.length).toBeGreaterThan(4);
    for (const name of names) check(readFileSync(new URL(name, folder)));
  });

  it.each(hostile)("are refused if they state %s", (_what, tables, message) => {
    const refused = {
      code: "upstream_invalid",
      retryable: false,
      message: expect.stringContaining(message),
    };
    expect(() => check(buildMp4(tables))).toThrow(expect.objectContaining(refused));
  });

  it("are refused outside their place, where another reader might find them", () => {
    const misplaced = buildMp4();
    misplaced.write("minf", misplaced.indexOf("stbl"));
    expect(() => check(misplaced)).toThrow(/"stts" is in "minf"/);
  });
});
