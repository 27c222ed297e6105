import { afterAll, describe, expect, it } from "vitest";
import { bodies } from "./bodies.ts";
import { constructs } from "./constructs.ts";
import { findExcess, heapMiB, readerHeapMiB } from "./growth.ts";
import { PageReader } from "./reader.ts";

/** How many times as long the pages are: 4 for the longest ones that the service reads. */
const scale = Number(process.env["GROWTH_SCALE"] ?? 1);

describe("a page that is grown 10 and 100 times takes linear time and bounded memory", () => {
  const reader = new PageReader(heapMiB);
  afterAll(async () => reader[Symbol.asyncDispose]());

  it.each(constructs)("%s", async (_, grow) => {
    expect(await findExcess(reader, grow, scale)).toBeNull();
  });
});

describe("a manifest, feed or other response that is grown 10 and 100 times takes linear time and a reader's memory", () => {
  const reader = new PageReader(readerHeapMiB);
  afterAll(async () => reader[Symbol.asyncDispose]());

  it.each(bodies)("%s", async (_, grow) => {
    expect(await findExcess(reader, grow, scale)).toBeNull();
  });
});
