import { spawn, type SpawnOptions } from "node:child_process";
import { once } from "node:events";

/** A program that does not outlive the process which started it. */
export interface GuardedProgram {
  /** Returns the last 10,000 characters of its stderr. */
  log(): string;
  /** Resolves when it has written `words` to stderr; to false if it ended without them. */
  hasWritten(words: string): Promise<boolean>;
  /** Resolves when it has ended without `end`. */
  hasEnded(): Promise<void>;
  /** Interrupts it unless it has ended; resolves with its exit code. */
  end(): Promise<number | null>;
}

/**
 * The shell runs the program and waits for a word on its stdin. If stdin ends without one, the process that
 * started it has died.
 */
const guard = `
folder=$1; shift
"$@" </dev/null & program=$!
exec 2>/dev/null
read -r word
kill -INT $program
wait $program; code=$?
[ "$word" = end ] || rm -rf "$folder"
exit $code
`;

/** Starts `command`; when this process ends, interrupts it and removes `folder`. */
export function startGuarded(
  command: readonly string[],
  folder: string,
  user: Pick<SpawnOptions, "uid" | "gid">,
): GuardedProgram {
  const shell = spawn("/bin/sh", ["-c", guard, "guard", folder, ...command], {
    ...user,
    cwd: folder,
    env: { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" },
    stdio: ["pipe", "ignore", "pipe"],
    detached: true,
  });
  const exited = once(shell, "exit");
  const silent = once(shell.stderr, "close");
  let log = "";
  shell.stderr.setEncoding("utf8").on("data", (piece: string) => {
    log = (log + piece).slice(-10_000);
  });
  return {
    log: () => log,
    hasWritten(words) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      shell.stderr.on("data", () => log.includes(words) && resolve(true));
      return Promise.race([promise, silent.then(() => false)]);
    },
    async hasEnded() {
      await silent;
    },
    async end() {
      shell.stdin.end("end\n");
      const [code] = await exited;
      return code as number | null;
    },
  };
}
