import { execFile } from "node:child_process";

/** What `runFfmpeg` asks for, and what it gets. */
export interface Asked {
  id: number;
  args: readonly string[];
}
export interface Ended {
  id: number;
  stdout: string;
  /** `null`: it ended well. */
  error: string | null;
}

process.on("message", ({ id, args }: Asked) => {
  execFile("ffmpeg", args, { maxBuffer: 64 << 20 }, (error, stdout) => {
    if (process.connected) process.send?.({ id, stdout, error: error?.message ?? null } satisfies Ended);
  });
});
