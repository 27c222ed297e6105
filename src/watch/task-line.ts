import type { Progress, WaitReason } from "../model/progress.ts";
import type { Task, TaskFile } from "../model/task.ts";
import type { MemberCounts } from "../model/collection.ts";

/** Returns a task's status as one line that is safe to print; the title is last, as it may be long. */
export function taskLine(task: Task): string {
  const { info, collection, url } = task;
  return `${statusOf(task)}  ${printable(info?.title ?? collection?.entry?.title ?? url)}`;
}

function statusOf(task: Task): string {
  const { state, progress, file, removed_at, retry_at, error, finish_requested, counts } = task;
  if (counts !== undefined) return collectionLine(task, counts);
  // An event of an earlier release has no `removed_at`.
  if (removed_at != null) return `succeeded  file removed ${printable(removed_at)} `;
  if (state === "succeeded") return `succeeded  ${formatBytes(file?.size ?? null)}${warned(file)}`;
  if (state === "failed") return `failed: ${printable(error?.message ?? "")} `;
  if (state === "queued" && error !== null) return `retrying ${atTime(retry_at)}after: ${printable(error.message)} `;
  if (state !== "running") return state;
  return `${runningLine(progress)}${waitOf(progress ?? {})}${finish_requested === true ? "  finishing" : ""}`;
}

function atTime(time: string | undefined): string {
  return time === undefined ? "" : `at ${printable(new Date(time).toTimeString().slice(0, 8))} `;
}

function waitOf({ waiting_for: reason }: Partial<Progress>): string {
  return reason !== undefined && Object.hasOwn(waitNames, reason) ? `  waiting for ${waitNames[reason]}` : "";
}

const waitNames: Readonly<Record<WaitReason, string>> = {
  speed: "the speed limit",
  host: "the host",
  library: "the library",
};

/** Says how many of the entries have ended. */
function collectionLine(
  { state, error }: Task,
  { queued, running, succeeded, failed, canceled }: MemberCounts,
): string {
  const ended = succeeded + failed + canceled;
  const all = ended + queued + running;
  const percent = all === 0 ? null : Math.floor((100 * ended) / all);
  const others = [running > 0 && `${running} running`, failed > 0 && `${failed} failed`].filter(Boolean);
  const line = [`${succeeded} of ${all} entries`, ...others].join(", ");
  if (state === "running") return `${bar(percent)}  ${line} `;
  return state === "failed" ? `failed: ${printable(error?.message ?? "")} ` : `${state}  ${line} `;
}

function warned(file: TaskFile | null): string {
  const codes = file?.warnings?.map(({ code }) => code) ?? [];
  return codes.length === 0 ? "" : `  with warnings: ${printable(codes.join(", "))}`;
}

function runningLine(progress: Progress | null): string {
  if (progress === null || progress.stage === "resolving") return `${bar(null)}  resolving`;
  const { stage, downloaded_bytes: bytes, total_bytes: total, speed, eta } = progress;
  const percent = percentOf(progress);
  const share = percent === null ? "   ? %" : `${percent.toString().padStart(4)} %`;
  const size = `${formatBytes(bytes)} of ${formatBytes(total)}`.padEnd(20);
  if (stage === "processing") return `${bar(percent)} ${share}  ${size}  processing`;
  const rate = speed === null ? "" : `${formatBytes(speed)}/s`;
  const left = eta === null ? "" : `${formatDuration(eta)} left`;
  return `${bar(percent)} ${share}  ${size}  ${rate.padStart(10)}  ${left.padStart(12)}`;
}

/** Returns 0 to 100, rounded down; `null` while the size is unknown. */
export function percentOf(progress: Progress | null): number | null {
  if (progress === null || !progress.total_bytes) return null;
  const share = (progress.downloaded_bytes ?? 0) / progress.total_bytes;
  return Math.floor(Math.min(1, share) * 100);
}

function bar(percent: number | null): string {
  const full = Math.round((percent ?? 0) / 5);
  return `[${"#".repeat(full)}${"-".repeat(20 - full)}]`;
}

function formatBytes(bytes: number | null): string {
  if (bytes === null) return "?";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.95 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

function formatDuration(seconds: number): string {
  const whole = Math.ceil(seconds);
  const pad = (part: number) => `${part}`.padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}

/** Removes characters that control a terminal or change the reading direction; at most 200 UTF-16 units. */
export function printable(text: string): string {
  return text
    .slice(0, 200)
    .toWellFormed()
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .trim();
}
