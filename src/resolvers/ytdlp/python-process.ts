import { spawn } from "node:child_process";
import { Socket } from "node:net";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { messageOf } from "../../model/errors.ts";

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

interface PythonOptions {
  /** Python, and its own arguments. */
  python: readonly [string, ...string[]];
  /** File of this folder's `python`. */
  program: string;
  args: readonly string[];
  searchPath: string;
}

/**
 * Starts a program with PATH as its only variable, and no input or output but the socket. It leads a process group, which
 * is killed when the program ends, and when this process does.
 */
export function startPython({ python, program, args, searchPath }: PythonOptions): PythonProcess {
  const [command, ...pythonArgs] = python;
  const run = (file: string) => [...pythonArgs, "-I", fileURLToPath(new URL(`./python/${file}`, import.meta.url))];
  const options = { cwd: "/", env: { PATH: searchPath }, detached: true };
  const child = spawn(command, [...run(program), ...args], { ...options, stdio: ["ignore", "ignore", "pipe", "pipe"] });
  const warden =
    child.pid === undefined
      ? undefined
      : spawn(command, [...run("warden.py"), `${child.pid}`], { ...options, stdio: ["pipe", "ignore", "ignore"] });
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
  function kill(reason: string): void {
    killReason ??= reason;
    child.kill("SIGKILL");
  }
  warden?.stdin.on("error", () => {});
  warden?.on("error", (error) => kill(`nothing would end it with the service: ${error.message}`));
  const onEnd = () => {
    killGroup(child.pid);
    warden?.kill("SIGKILL");
    const last = errorOutput.trimEnd().split("\n").at(-1) ?? "";
    const { signalCode, exitCode } = child;
    const how = signalCode === null ? `exit code ${exitCode}` : `signal ${signalCode}`;
    child.stderr?.destroy();
    socket.destroy();
    ended.resolve(killReason ?? (last === "" ? how : `${how}: ${last}`));
  };
  // Another process may hold the error output: "close" would wait for that.
  child.once("exit", () => setTimeout(onEnd, lastOutputMs)).once("close", onEnd);
  return { socket, ended: ended.promise, kill };
}

/** Kills the processes of a group, if there are any. */
export function killGroup(group: number | undefined): void {
  try {
    if (group !== undefined) process.kill(-group, "SIGKILL");
  } catch {
    // They have ended.
  }
}

/** What the Python process sends: see `_write_frame` in `python/fork_server.py`. */
export interface Frame {
  kind: string;
  /** Number of the request; 0 for what concerns the process itself. */
  id: number;
  payload: Buffer;
}

const headBytes = 9;
const maxPayloadBytes = 64 * 1024;

/**
 * Calls `onFrame` for each frame in `input`. Calls `onInvalid` once, and reads no further, if `onFrame`
 * throws, or the input is not made of frames.
 */
export function readFrames(
  input: Readable,
  onFrame: (frame: Frame) => void,
  onInvalid: (reason: string) => void,
): void {
  let rest: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    try {
      let frame = takeFrame(rest);
      while (frame !== undefined) {
        rest = rest.subarray(headBytes + frame.payload.length);
        onFrame(frame);
        frame = takeFrame(rest);
      }
    } catch (error) {
      input.off("data", onData).resume();
      onInvalid(messageOf(error));
    }
  };
  input.on("data", onData);
}

function takeFrame(bytes: Buffer): Frame | undefined {
  const kind = bytes.toString("latin1", 0, 1);
  if (/[^A-Z]/.test(kind)) throw new Error("it sent something other than frames");
  if (bytes.length < headBytes) return undefined;
  const id = bytes.readUInt32BE(1);
  const length = bytes.readUInt32BE(5);
  if (length > maxPayloadBytes) throw new Error(`it sent a frame of ${length} bytes`);
  if (bytes.length < headBytes + length) return undefined;
  return { kind, id, payload: bytes.subarray(headBytes, headBytes + length) };
}
