import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";

/** Runs a command; returns the seconds it took. @throws Error if it fails. */
function timeCommand(command: string, args: readonly string[]): number {
  const startMs = performance.now();
  execFileSync(command, args, { stdio: ["ignore", "ignore", "inherit"] });
  return (performance.now() - startMs) / 1000;
}

/** Waits until all written data is on the disk. */
export function flushDisk(): void {
  execFileSync("sync");
}

export function timeCurl(url: string, folder: string): number {
  return timeInto(folder, (target) => timeCommand("curl", ["-sSf", "-o", target, url]));
}

/** Does what the service does: writes the file to the disk and hashes it. */
export function timeCurlKept(url: string, folder: string): number {
  const script = 'curl -sSf -o "$1" "$2" && sync "$1" && sha256sum "$1"';
  return timeInto(folder, (target) => timeCommand("sh", ["-c", script, "sh", target, url]));
}

export function timeFfmpeg(url: string, folder: string): number {
  return timeInto(folder, (target) => timeCommand("ffmpeg", ["-v", "error", "-y", "-i", url, "-c", "copy", target]));
}

function timeInto(folder: string, run: (target: string) => number): number {
  const target = join(folder, "target.mp4");
  const seconds = run(target);
  rmSync(target);
  return seconds;
}
