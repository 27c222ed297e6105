import { spawn } from "node:child_process";
import { appendFile, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { first } from "../media/faults.ts";
import {
  hashOfFile,
  leaveAfter,
  mediumOf,
  MiB,
  sha256,
  startPartsHarness,
  type PartsHarness,
} from "./parts-harness.ts";

const size = 400_000;
const medium = mediumOf(size);

/** A first run has stored 300,000 bytes. */
async function startHalfway(): Promise<PartsHarness> {
  const harness = await startPartsHarness();
  harness.server.serve("/medium", medium, { stallAfter: 300_000 });
  await leaveAfter(harness, 300_000);
  harness.server.serve("/medium", medium);
  return harness;
}

const journalOf = ({ folder }: PartsHarness) => join(folder, "journal.ndjson");
const lastRange = ({ server }: PartsHarness) => server.requests.at(-1)?.headers.range;

describe("a later run", () => {
  it("resumes where the one before stopped", async () => {
    const harness = await startHalfway();
    const parts = await harness.open();
    expect(parts.bytes).toBe(300_000);
    const { path } = await harness.fetch(parts);
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(lastRange(harness)).toBe("bytes=300000-");
    expect(parts.bytes).toBe(size);
  });

  it("returns a complete part without a request", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium);
    await harness.fetch(await harness.open());
    const parts = await harness.open();
    const { path } = await harness.fetch(parts);
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect([parts.bytes, harness.server.requests.length]).toEqual([size, 1]);
  });

  it("needs no request if only the `end` record is missing", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium);
    await harness.fetch(await harness.open());
    const lines = (await readFile(journalOf(harness), "utf8")).split("\n");
    await writeFile(journalOf(harness), `${lines.slice(0, 2).join("\n")}\n`);
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(harness.server.requests).toHaveLength(1);
  });

  it.each(["{", '{"type":"end","part":"file","si', "\0\0\0\0", '{"type":"synced"\n{"type":"begin"'])(
    "ignores the torn end %j of the journal",
    async (torn) => {
      const harness = await startHalfway();
      await appendFile(journalOf(harness), torn);
      await harness.fetch(await harness.open());
      expect(lastRange(harness)).toBe("bytes=300000-");
      const { path } = await harness.fetch(await harness.open());
      expect(await hashOfFile(path)).toBe(sha256(medium));
      expect(harness.server.requests).toHaveLength(2);
    },
  );

  it("ignores complete lines after a torn one that was overwritten", async () => {
    const harness = await startHalfway();
    const next = JSON.stringify({ type: "end", part: "file", size });
    const stale = JSON.stringify({ type: "lost", part: "file" });
    await appendFile(journalOf(harness), `${"x".repeat(next.length)}\n${stale}\n`);
    await harness.fetch(await harness.open());
    await harness.fetch(await harness.open());
    expect(harness.server.requests).toHaveLength(2);
  });

  it("restarts after the journal was lost", async () => {
    const harness = await startHalfway();
    await truncate(journalOf(harness), 3);
    const parts = await harness.open();
    expect([parts.bytes, await readdir(harness.folder)]).toEqual([0, ["journal.ndjson"]]);
    await harness.fetch(parts);
    expect(lastRange(harness)).toBeUndefined();
  });

  it("empties the folder of another identity", async () => {
    const harness = await startHalfway();
    await writeFile(join(harness.folder, "result"), "of another run");
    const parts = await harness.open({ identity: "format 2" });
    expect([parts.bytes, await readdir(harness.folder)]).toEqual([0, ["journal.ndjson"]]);
  });

  it("restarts a part whose range differs", async () => {
    const harness = await startHalfway();
    const range = { offset: 7, length: 100_000 };
    const { path } = await harness.fetch(await harness.open(), { range });
    expect(await hashOfFile(path)).toBe(sha256(medium.subarray(7, 100_007)));
    expect(lastRange(harness)).toBe("bytes=7-100006");
  });

  it("restarts if the resource has changed", async () => {
    const harness = await startHalfway();
    const later = mediumOf(size + 5, 2);
    harness.server.serve("/medium", later, first(2, { cutAfter: 350_000 }));
    await (await harness.open()).close();
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(later));
  });

  it("restarts a part whose file is missing", async () => {
    const harness = await startHalfway();
    await rm(join(harness.folder, "file"));
    const parts = await harness.open();
    expect(parts.bytes).toBe(0);
    const { path } = await harness.fetch(parts);
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(lastRange(harness)).toBeUndefined();
  });
});

describe("after a restart of the machine", () => {
  async function restartMachine({ folder }: PartsHarness): Promise<void> {
    const path = join(folder, "journal.ndjson");
    const text = await readFile(path, "utf8");
    await writeFile(path, text.replace(/"boot":"[^"]*"/, '"boot":"an earlier one"'));
  }

  it("trusts no unflushed bytes, and cuts them off", async () => {
    const harness = await startHalfway();
    await restartMachine(harness);
    await (await harness.open()).close();
    expect((await readFile(join(harness.folder, "file"))).length).toBe(0);
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(lastRange(harness)).toBeUndefined();
  });

  it("trusts flushed bytes", async () => {
    const harness = await startHalfway();
    const synced = { type: "synced", part: "file", bytes: 250_000 };
    await appendFile(journalOf(harness), `${JSON.stringify(synced)}\n`);
    await restartMachine(harness);
    const parts = await harness.open();
    expect(parts.bytes).toBe(250_000);
    const { path } = await harness.fetch(parts);
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(lastRange(harness)).toBe("bytes=250000-");
  });
});

describe("after SIGKILL", () => {
  it.each([21, 22, 23])("fetches no stored byte again (seed %i)", async (seed) => {
    const harness = await startPartsHarness();
    const large = mediumOf(8 * MiB);
    const at = mediumOf(4, seed).readUInt32BE() % large.length;
    harness.server.serve("/medium", large, first(1, { stallAfter: at }));
    const program = join(import.meta.dirname, "parts-child.ts");
    const url = harness.server.url("/medium").href;
    const child = spawn(process.execPath, [program, harness.folder, url]);
    let reported = 0;
    for await (const line of createInterface(child.stdout)) {
      reported = Number(line);
      if (reported >= at / 2) child.kill("SIGKILL");
    }
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(large));
    const [, from = ""] = /^bytes=(\d+)-$/.exec(lastRange(harness) ?? "") ?? [];
    expect(Number(from)).toBeGreaterThanOrEqual(reported);
    expect(reported).toBeGreaterThan(0);
  });
});
