import assert from "node:assert/strict";
import * as fc from "fast-check";
import { pageParts } from "../page-html.ts";
import { defineTarget } from "../target.ts";
import { findExcess, heapMiB } from "./growth.ts";
import { fill, type Grow, list } from "./grow.ts";
import { PageReader } from "./reader.ts";

const parts = fc
  .array(fc.oneof(...pageParts), { minLength: 1, maxLength: 4 })
  .map((texts) => texts.join(""))
  .filter((text) => text !== "");

const input = fc.record({
  before: fc.option(parts, { nil: "" }),
  repeated: parts,
  /** Whether each repetition has files of its own. */
  isNumbered: fc.boolean(),
  after: fc.option(parts, { nil: "" }),
});

const reader = new PageReader(heapMiB);

/** Any parts of pages, repeated: linear time and bounded memory. */
export const growthTarget = defineTarget({
  name: "growth",
  input,
  prepare({ before, repeated, isNumbered, after }): Grow {
    const middle = (length: number) =>
      isNumbered ? list((n) => repeated.replaceAll(/\d\.mp4/g, `${n}.mp4`), length) : fill(repeated, length);
    return (length) => before + middle(length) + after;
  },
  run: (grow) => findExcess(reader, grow),
  check(outcome) {
    if ("error" in outcome) throw outcome.error;
    assert.equal(outcome.value, null);
  },
  // Making the pages takes this process long.
  stallFactor: Infinity,
  shortRuns: 25,
  close: () => reader[Symbol.asyncDispose](),
});
