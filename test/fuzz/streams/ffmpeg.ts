import { type ChildProcess, fork } from "node:child_process";
import type { Asked, Ended } from "./ffmpeg-process.ts";

let starter: ChildProcess | undefined;
let asked = 0;
const waiting = new Map<number, (ended: Ended) => void>();

/** Runs ffmpeg from a small process: to start programs from one with much memory takes it tens of milliseconds. */
export async function runFfmpeg(args: readonly string[]): Promise<Ended> {
  starter ??= startStarter();
  const { promise, resolve } = Promise.withResolvers<Ended>();
  asked += 1;
  waiting.set(asked, resolve);
  starter.send({ id: asked, args } satisfies Asked);
  return promise;
}

export function stopFfmpeg(): void {
  starter?.disconnect();
  starter = undefined;
}

function startStarter(): ChildProcess {
  const child = fork(new URL("ffmpeg-process.ts", import.meta.url), { execArgv: [] });
  child.on("message", (ended: Ended) => {
    waiting.get(ended.id)?.(ended);
    waiting.delete(ended.id);
  });
  return child;
}
