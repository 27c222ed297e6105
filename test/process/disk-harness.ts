import { hash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { vi } from "vitest";
import type { Resources } from "../media/resources.ts";
import { startSite } from "../media/site.ts";
import { journalName } from "../../src/files/stream-journal.ts";
import type { Task } from "../../src/model/task.ts";
import { type Fault, type LastingFault, type SingleFault, startFaultyService } from "./disk-faults.ts";
import { openTaskClient } from "./download-client.ts";

export interface TestedMedium {
  resources: Resources;
  entry: string;
}

/** Downloads one medium in one process, each time with a different disk fault. */
interface DiskHarness extends AsyncDisposable {
  /** How many calls of each kind a download makes. */
  readonly calls: ReadonlyMap<string, number>;
  /**
   * Downloads while one call fails: only a full disk may fail the task, and not in a call that writes the journal of its stream.
   * Returns `false` if the download did not make the call.
   */
  failOnce(fault: SingleFault): Promise<boolean>;
  /** Downloads while all calls from one on fail, then repairs the disk and retries a failed task. */
  failFrom(fault: LastingFault): Promise<void>;
  /** Every violation so far. */
  problems(): string[];
}

export async function openDiskHarness(dataDir: string, medium: TestedMedium): Promise<DiskHarness> {
  const site = await startSite(medium.resources);
  const service = await startFaultyService(dataDir, {
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
    MAX_ATTEMPTS: "3",
    RETRY_BACKOFF_MS: "0",
  });
  const client = await openTaskClient(service.url);
  const page = site.url(medium.entry);
  const problems: string[] = [];

  async function ended(): Promise<Task> {
    return client.ended((await client.post(page)).id);
  }

  // Only the first download creates the folders.
  const first = await ended();
  const expectedHash = first.file?.sha256;
  if (expectedHash === undefined) throw new Error(`the first download failed: ${JSON.stringify(first.error)}`);
  await client.request("DELETE", first.id);
  await service.disarm();
  const second = await ended();
  const { calls } = await service.disarm();
  await client.request("DELETE", second.id);

  /** Yields what is wrong with the task, its file and the data folder. */
  async function* check({ id, state, file, error }: Task, fault: Fault) {
    if (!(await client.list()).some((task) => task.id === id)) yield "the task is lost";
    if (state === "succeeded") {
      const fetched = hash("sha256", await (await client.file(id)).bytes());
      if (fetched !== expectedHash || file?.sha256 !== expectedHash) yield "its file is wrong";
    } else {
      const expected = fault.code === "ENOSPC" ? "disk_full" : "unavailable";
      if (state !== "failed" || error?.code !== expected) yield `it is ${state}: ${error?.message}`;
    }
    // A result that a failing disk does not remove must at least be complete.
    const mayBeLeft = "from" in fault && state === "failed";
    const isClean = () =>
      isSame(namesIn("files"), state === "succeeded" ? [id] : []) ||
      (mayBeLeft && isSame(namesIn("files"), [id]) && hash("sha256", readFileSync(pathOf(id))) === expectedHash);
    if (!(await becomesTrue(isClean))) yield "a file is left that is no result";
  }

  async function* checkDelete({ id }: Task) {
    const status = await client.request("DELETE", id);
    if (status !== 204) yield `DELETE returned ${status}`;
    const isGone = () => [...namesIn("files"), ...namesIn("parts")].length === 0;
    if (!(await becomesTrue(isGone))) yield "files are left";
  }

  const pathOf = (id: string) => join(dataDir, "files", id);

  function namesIn(folder: string): string[] {
    const path = join(dataDir, folder);
    return existsSync(path) ? readdirSync(path) : [];
  }

  async function note(about: string, found: AsyncIterable<string>): Promise<void> {
    for await (const problem of found) problems.push(`${about}: ${problem}`);
  }

  return {
    calls: new Map(Object.entries(calls)),

    async failOnce(fault) {
      await service.arm(fault);
      const task = await ended();
      const { failed } = await service.disarm();
      const about = `call ${fault.nth} of ${fault.kind} with ${fault.code}`;
      await note(about, check(task, fault));
      const mayFail = fault.code === "ENOSPC" && !isForJournal(fault);
      if (!mayFail && task.state !== "succeeded") {
        problems.push(`${about}: a single fault failed it: ${task.error?.message}`);
      }
      await note(about, checkDelete(task));
      return failed !== null;
    },

    async failFrom(fault) {
      await service.arm(fault);
      const task = await ended();
      const { failed } = await service.disarm();
      const about = `calls from ${fault.from} (${failed}) with ${fault.code}`;
      await note(about, check(task, fault));
      if (task.state === "failed") {
        await client.request("POST", task.id, "/retry");
        const again = await client.ended(task.id);
        if (again.state !== "succeeded") problems.push(`${about}: a retry: ${again.error?.message}`);
        await note(`${about}, after a retry`, check(again, { kind: "none", nth: 0, code: fault.code }));
      }
      await note(about, checkDelete(task));
    },

    problems: () => [
      ...problems,
      ...badLines(service.log),
      ...service.openFiles().map((path) => `${path} is still open`),
    ],

    async [Symbol.asyncDispose]() {
      client.close();
      await service.end("SIGTERM");
      await site.close();
    },
  };
}

/** Whether the call fails what only the journal of a stream needs: not the removal of its folder after the run. */
function isForJournal({ kind }: Pick<SingleFault, "kind">): boolean {
  return kind.includes(journalName) && !kind.startsWith("unlink ");
}

/** Returns the log lines about unexpected errors. */
function badLines(log: string): string[] {
  const bad = /"level":60|"code":"internal"|(?:internal|unexpected|unhandled) error/;
  return log.split("\n").filter((line) => bad.test(line));
}

async function becomesTrue(holds: () => boolean): Promise<boolean> {
  return vi.waitUntil(holds, { timeout: 60_000, interval: 10 }).catch(() => false);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, i) => name === other[i]);
}
