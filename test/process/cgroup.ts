import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A group of processes with a limit of memory (cgroups(7)), version 1 or 2. */
interface Cgroup {
  /** Returns the command that runs another one in the group. */
  commandOf(command: readonly string[]): string[];
  /** Removes the group, whose processes have ended. */
  remove(): void;
}

const hierarchies = [
  ["/sys/fs/cgroup/memory", "memory.limit_in_bytes"],
  ["/sys/fs/cgroup", "memory.max"],
] as const;

/** Makes a group; undefined without the right to. */
export function makeCgroup(limitBytes: number): Cgroup | undefined {
  for (const [hierarchy, limit] of hierarchies) {
    const folder = join(hierarchy, `unreel-test-${process.pid}`);
    try {
      mkdirSync(folder);
    } catch {
      continue;
    }
    try {
      writeFileSync(join(folder, limit), `${limitBytes}`);
    } catch {
      rmdirSync(folder);
      continue;
    }
    const enter = `echo $$ > ${join(folder, "cgroup.procs")} && exec "$@"`;
    return {
      commandOf: (command) => ["sh", "-c", enter, "sh", ...command],
      remove: () => rmdirSync(folder),
    };
  }
  return undefined;
}
