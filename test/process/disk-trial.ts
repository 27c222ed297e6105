import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { vi } from "vitest";
import type { Resources } from "../media/resources.ts";
import { startSite } from "../media/site.ts";
import type { Task } from "../../src/task.ts";
import { type Fault, startFaultyService } from "./disk-faults.ts";
import { openTaskClient } from "./download-client.ts";

export interface DiskTrialMedium {
  resources: Resources;
  entry: string;
}

/** Downloads of one medium by one process, each with another fault of the disk. */
export interface DiskTrial extends AsyncDisposable {
  /** A download during which one call fails; gives whether there was such a call. */
  failOnce(fault: Fault): Promise<boolean>;
  /** A download with a disk that fails from a call on; once it works again the task is retried. */
  failFrom(fault: Fault): Promise<void>;
  /** What was not as it has to be. */
  findings(): string[];
}

export async function openDiskTrial(dataDir: string, medium: DiskTrialMedium): Promise<DiskTrial> {
  const site = await startSite(medium.resources);
  const service = await startFaultyService(dataDir, {
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
    MAX_ATTEMPTS: "3",
    RETRY_BACKOFF_MS: "0",
  });
  const client = await openTaskClient(service.url);
  const page = site.url(medium.entry);
  const found: string[] = [];

  async function ended(): Promise<Task> {
    return client.ended((await client.post(page)).id);
  }

  const right = (await ended()).file?.sha256;
  await client.order("DELETE", (await client.list())[0]?.id ?? "");

  /** What is wrong with the task, its file, and what is on the disk. */
  async function* faultsOf({ id, state, file, error }: Task, { code, isLasting }: Fault) {
    if (!(await client.list()).some((task) => task.id === id)) yield "the task is lost";
    if (state === "succeeded") {
      const fetched = hashOf(Buffer.from(await (await client.file(id)).arrayBuffer()));
      if (fetched !== right || file?.sha256 !== right) yield "its file is not right";
    } else {
      const expected = code === "ENOSPC" ? "disk_full" : "unavailable";
      if (state !== "failed" || error?.code !== expected) yield `it is ${state}: ${error?.message}`;
    }
    // What a broken disk does not let go is whole all the same.
    const mayBeLeft = isLasting === true && state === "failed";
    const isTidy = () =>
      isSame(namesIn("files"), state === "succeeded" ? [id] : []) ||
      (mayBeLeft && isSame(namesIn("files"), [id]) && hashOf(readFileSync(pathOf(id))) === right);
    if (!(await comesTrue(isTidy))) yield "there is a file that is no result";
  }

  async function* leftAfterDelete({ id }: Task) {
    const status = await client.order("DELETE", id);
    if (status !== 204) yield `DELETE answers ${status}`;
    const isGone = () => [...namesIn("files"), ...namesIn("parts")].length === 0;
    if (!(await comesTrue(isGone))) yield "something of it is left";
  }

  const pathOf = (id: string) => join(dataDir, "files", id);

  function namesIn(folder: string): string[] {
    const path = join(dataDir, folder);
    return existsSync(path) ? readdirSync(path) : [];
  }

  async function note(about: string, faults: AsyncIterable<string>): Promise<void> {
    for await (const fault of faults) found.push(`${about}: ${fault}`);
  }

  return {
    async failOnce(fault) {
      await service.arm(fault);
      const task = await ended();
      const { failed } = await service.disarm();
      const about = `call ${fault.n} (${failed}) with ${fault.code}`;
      await note(about, faultsOf(task, fault));
      if (fault.code !== "ENOSPC" && task.state !== "succeeded") {
        found.push(`${about}: one failure is too much for it: ${task.error?.message}`);
      }
      await note(about, leftAfterDelete(task));
      return failed !== null;
    },

    async failFrom(fault) {
      await service.arm({ ...fault, isLasting: true });
      const task = await ended();
      const { failed } = await service.disarm();
      const about = `calls from ${fault.n} (${failed}) with ${fault.code}`;
      await note(about, faultsOf(task, { ...fault, isLasting: true }));
      if (task.state === "failed") {
        await client.order("POST", task.id, "/retry");
        const again = await client.ended(task.id);
        if (again.state !== "succeeded") found.push(`${about}: a retry: ${again.error?.message}`);
        await note(`${about}, tried again`, faultsOf(again, fault));
      }
      await note(about, leftAfterDelete(task));
    },

    findings: () => [
      ...found,
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

/** A line of the log about what nobody foresaw. */
function badLines(log: string): string[] {
  const bad = /"level":60|fault of the program|"code":"internal"|nobody/;
  return log.split("\n").filter((line) => bad.test(line));
}

async function comesTrue(holds: () => boolean): Promise<boolean> {
  return vi.waitUntil(holds, { timeout: 1_000, interval: 10 }).catch(() => false);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, i) => name === other[i]);
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
