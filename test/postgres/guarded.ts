import { spawn, type SpawnOptions } from "node:child_process";
import { once } from "node:events";

/** A program that does not outlive the process which started it. */
export interface GuardedProgram {
  /** What it has written to stderr, up to its last 10,000 characters. */
  log(): string;
  /** Resolves when it has written `words` to stderr; to false if it ended without them. */
  hasWritten(words: string): Promise<boolean>;
  /** Resolves when it has ended by itself. */
  hasEnded(): Promise<void>;
  /** Interrupts it unless it has ended; resolves with its exit code. */
  end(): Promise<number | null>;
}

/**
 * The shell stands between us and the program: it waits for a word on its stdin, and a stdin that
 * ends without one says that we have died, however that happened.
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

/** Starts `command`, to be interrupted when this process ends; `folder` is removed then. */
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
