import { spawn } from "node:child_process";
import { Socket } from "node:net";

/** A Python program with a socket to it. */
export interface PythonProcess {
  /** File descriptor 3 of the program; its errors are those of a process that has ended. */
  readonly socket: Socket;
  /** Resolves with the reason once the process has ended, or has not been started. */
  readonly ended: Promise<string>;
  /** Kills the process; the first reason given is that of `ended`. */
  kill(reason: string): void;
}

const maxErrorLength = 2_000;
/** Longest wait for the error output of a process that has ended. */
const lastOutputMs = 50;

/** Starts a program with PATH as its only variable, and no input or output but the socket. */
export function startPython(
  [command, ...args]: readonly [string, ...string[]],
  searchPath: string,
): PythonProcess {
  const child = spawn(command, args, {
    cwd: "/",
    env: { PATH: searchPath },
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  const ended = Promise.withResolvers<string>();
  let killReason: string | undefined;
  let errorOutput = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errorOutput = (errorOutput + text).slice(-maxErrorLength);
  });
  child.on("error", (error) => {
    if (child.pid === undefined) ended.resolve(error.message);
  });
  const [, , , pipe] = child.stdio;
  const socket = pipe instanceof Socket ? pipe : new Socket();
  socket.on("error", () => {});
  const onEnd = () => {
    const last = errorOutput.trimEnd().split("\n").at(-1) ?? "";
    const { signalCode, exitCode } = child;
    const how = signalCode === null ? `exit code ${exitCode}` : `signal ${signalCode}`;
    child.stderr?.destroy();
    socket.destroy();
    ended.resolve(killReason ?? (last === "" ? how : `${how}: ${last}`));
  };
  // Another process may hold the error output: "close" would wait for that.
  child.once("exit", () => setTimeout(onEnd, lastOutputMs)).once("close", onEnd);
  return {
    socket,
    ended: ended.promise,
    kill(reason) {
      killReason ??= reason;
      child.kill("SIGKILL");
    },
  };
}
