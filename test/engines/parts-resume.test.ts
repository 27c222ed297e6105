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
  startTrial,
  type PartsHarness,
} from "./parts-harness.ts";

const size = 400_000;
const medium = mediumOf(size);

/** A first run got 300,000 bytes, of which the last ones may have been under way. */
async function startHalfway(): Promise<PartsHarness> {
  const trial = await startTrial();
  trial.server.serve("/medium", medium, { stallAfter: 300_000 });
  await leaveAfter(trial, 300_000);
  trial.server.serve("/medium", medium);
  return trial;
}

const journalOf = ({ folder }: PartsHarness) => join(folder, "journal.ndjson");
const lastRange = ({ server }: PartsHarness) => server.requests.at(-1)?.headers.range;

describe("a later run", () => {
  it("goes on where the one before it was left", async () => {
    const trial = await startHalfway();
    const parts = await trial.open();
    expect(parts.bytes).toBe(300_000);
    const { path } = await trial.fetch(parts);
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(lastRange(trial)).toBe("bytes=300000-");
    expect(parts.bytes).toBe(size);
  });

  it("gives what is complete without a request", async () => {
    const trial = await startTrial();
    trial.server.serve("/medium", medium, { headers: { "content-type": "video/mp4" } });
    await trial.fetch(await trial.open());
    const parts = await trial.open();
    expect(await trial.fetch(parts)).toMatchObject({ size, contentType: "video/mp4" });
    expect([parts.bytes, trial.server.requests.length]).toEqual([size, 1]);
  });

  it("needs no request either where only the record of the end is missing", async () => {
    const trial = await startTrial();
    trial.server.serve("/medium", medium);
    await trial.fetch(await trial.open());
    const lines = (await readFile(journalOf(trial), "utf8")).split("\n");
    await writeFile(journalOf(trial), `${lines.slice(0, 2).join("\n")}\n`);
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(trial.server.requests).toHaveLength(1);
  });

  it.each([
    "{",
    '{"type":"end","part":"file","si',
    "\0\0\0\0",
    '{"type":"synced"\n{"type":"begin"',
  ])("passes over the torn end %j of the journal", async (torn) => {
    const trial = await startHalfway();
    await appendFile(journalOf(trial), torn);
    await trial.fetch(await trial.open());
    expect(lastRange(trial)).toBe("bytes=300000-");
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(trial.server.requests).toHaveLength(2);
  });

  it("does not come upon whole lines behind a torn one, once that is written over", async () => {
    const trial = await startHalfway();
    const next = JSON.stringify({ type: "end", part: "file", size });
    const stale = JSON.stringify({ type: "lost", part: "file" });
    await appendFile(journalOf(trial), `${"x".repeat(next.length)}\n${stale}\n`);
    await trial.fetch(await trial.open());
    await trial.fetch(await trial.open());
    expect(trial.server.requests).toHaveLength(2);
  });

  it("begins anew after the journal was lost", async () => {
    const trial = await startHalfway();
    await truncate(journalOf(trial), 3);
    const parts = await trial.open();
    expect([parts.bytes, await readdir(trial.folder)]).toEqual([0, ["journal.ndjson"]]);
    await trial.fetch(parts);
    expect(lastRange(trial)).toBeUndefined();
  });

  it("removes everything that belongs to another identity", async () => {
    const trial = await startHalfway();
    await writeFile(join(trial.folder, "result"), "of another run");
    const parts = await trial.open({ identity: "format 2" });
    expect([parts.bytes, await readdir(trial.folder)]).toEqual([0, ["journal.ndjson"]]);
  });

  it("begins a part anew whose range is another one", async () => {
    const trial = await startHalfway();
    const range = { offset: 7, length: 100_000 };
    const { path } = await trial.fetch(await trial.open(), { range });
    expect(await hashOfFile(path)).toBe(sha256(medium.subarray(7, 100_007)));
    expect(lastRange(trial)).toBe("bytes=7-100006");
  });

  it("begins anew where the resource has changed meanwhile", async () => {
    const trial = await startHalfway();
    const later = mediumOf(size + 5, 2);
    trial.server.serve("/medium", later, first(2, { cutAfter: 350_000 }));
    await (await trial.open()).close();
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(later));
  });

  it("takes a part whose file has vanished for one that was never begun", async () => {
    const trial = await startHalfway();
    await rm(join(trial.folder, "file"));
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
  });
});

describe("after the machine has started again", () => {
  async function restartMachine({ folder }: PartsHarness): Promise<void> {
    const path = join(folder, "journal.ndjson");
    const text = await readFile(path, "utf8");
    await writeFile(path, text.replace(/"boot":"[^"]*"/, '"boot":"an earlier one"'));
  }

  it("trusts nothing that was not flushed, and cuts it off for good", async () => {
    const trial = await startHalfway();
    await restartMachine(trial);
    await (await trial.open()).close();
    expect((await readFile(join(trial.folder, "file"))).length).toBe(0);
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(lastRange(trial)).toBeUndefined();
  });

  it("trusts what was flushed", async () => {
    const trial = await startHalfway();
    const synced = { type: "synced", part: "file", bytes: 250_000 };
    await appendFile(journalOf(trial), `${JSON.stringify(synced)}\n`);
    await restartMachine(trial);
    const parts = await trial.open();
    expect(parts.bytes).toBe(250_000);
    const { path } = await trial.fetch(parts);
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(lastRange(trial)).toBe("bytes=250000-");
  });
});

describe("after SIGKILL", () => {
  it.each([21, 22, 23])("fetches nothing again that was in the file (seed %i)", async (seed) => {
    const trial = await startTrial();
    const large = mediumOf(8 * MiB);
    const at = mediumOf(4, seed).readUInt32BE() % large.length;
    trial.server.serve("/medium", large, first(1, { stallAfter: at }));
    const program = new URL("parts-child.ts", import.meta.url).pathname;
    const url = trial.server.url("/medium").href;
    const child = spawn(process.execPath, [program, trial.folder, url]);
    let told = 0;
    for await (const line of createInterface(child.stdout)) {
      told = Number(line);
      if (told >= at / 2) child.kill("SIGKILL");
    }
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(large));
    const [, from = ""] = /^bytes=(\d+)-$/.exec(lastRange(trial) ?? "") ?? [];
    expect(Number(from)).toBeGreaterThanOrEqual(told);
    expect(told).toBeGreaterThan(0);
  });
});
