import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { text } from "node:stream/consumers";
import packageJson from "../../package.json" with { type: "json" };

export interface ServiceProcess {
  url: string;
  process: ChildProcess;
  /** What it logged until it listened. */
  startLog: LogLine[];
  /** Sends `signal`; resolves with how the process ended. */
  end(signal: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** A line of the service's log. */
export type LogLine = Record<string, unknown>;

/** How `npm start` starts the program; `flags` come on top. */
export function commandWith(...flags: string[]): string[] {
  const program = fileURLToPath(new URL("../../src/start.js", import.meta.url));
  return [process.execPath, ...packageJson.config.flags.split(" "), ...flags, program];
}

export const startCommand = commandWith();

/** Starts the real program; `startService` also waits until it listens. */
export function spawnService(env: Record<string, string>, command = startCommand) {
  const [file = "", ...args] = command;
  return spawn(file, args, {
    env: { PATH: process.env["PATH"], PORT: "0", YTDLP: "off", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/**
 * Starts the real program on a free port of 127.0.0.1; resolves once it listens. `command`: another
 * way to start it.
 *
 * @throws Error with what it wrote to stderr if it ends first.
 */
export async function startService(env: Record<string, string>, command?: string[]): Promise<ServiceProcess> {
  const child = spawnService(env, command);
  const errors = text(child.stderr);
  const exited = once(child, "exit");
  const listening = await Promise.race([untilListening(child), exited.then(() => undefined)]);
  if (listening === undefined) throw new Error(`the service did not start: ${await errors}`);
  return {
    ...listening,
    process: child,
    async end(signal) {
      child.kill(signal);
      const [code, by] = await exited;
      return { code, signal: by };
    },
  };
}

/** Starts the real program with settings that it must refuse; returns its exit code and output. */
export async function startRefused(env: Record<string, string>) {
  const child = spawnService(env);
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  const [stdout, stderr, [code]] = await output;
  return { code: code as number | null, stdout, stderr };
}

/** Returns a list to which each line that the process logs from now on is added. */
export function collectLog({ process: child }: ServiceProcess): LogLine[] {
  const lines: LogLine[] = [];
  let rest = "";
  child.stdout!.on("data", (chunk: string) => {
    const complete = (rest + chunk).split("\n");
    rest = complete.pop() ?? "";
    lines.push(...complete.map((line) => JSON.parse(line) as LogLine));
  });
  return lines;
}

function untilListening(child: ChildProcess): Promise<{ url: string; startLog: LogLine[] }> {
  const { promise, resolve } = Promise.withResolvers<{ url: string; startLog: LogLine[] }>();
  let log = "";
  child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
    log = (log + chunk).slice(-10_000);
    const match = /"msg":"Server listening at (http:[^"]+)"/.exec(log);
    if (match?.[1] === undefined) return;
    const lines = log.slice(0, match.index).split("\n").slice(0, -1);
    const startLog = lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
    resolve({ url: match[1], startLog });
  });
  return promise;
}
