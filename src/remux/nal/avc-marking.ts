import type { MarkingCommand } from "./avc-slices.ts";

/** memory_management_control_operation: a short-term reference is no longer one. */
const unused = 1;

/**
 * Follows which frames a decoder keeps as references (§8.2.5), so that pictures name none that it does not have. The decoder gets a
 * copy of a key frame, as many missing frames as it keeps, and the key frame: it has neither the frames before that nor those that
 * were named by frames that are left out. Frames are numbered in decode order; the copy is 0. Ends at long-term references and fields.
 *
 * @param limit How many it keeps.
 * @param key Number of the key frame.
 */
export function createMarking(limit: number, key: number) {
  const most = Math.max(1, limit);
  /** In the order of their numbers. */
  const kept = Array.from({ length: key }, (_, number) => number).slice(-most);
  /** Those that frames that are left out have named. */
  const named = new Set<number>();
  let isOver = false;
  const slide = (): number | undefined => (kept.length < most ? undefined : kept.shift());
  const remove = (number: number): boolean => {
    const at = kept.indexOf(number);
    if (at >= 0) kept.splice(at, 1);
    return at >= 0;
  };
  /** Whether the decoder has the frame, or one that is missing, which can go for it. */
  const removeFor = (number: number): number | undefined => {
    if (remove(number)) return number;
    return number < key && (kept[0] ?? key) < key ? kept.shift() : undefined;
  };
  return {
    /** To be called where references are followed no longer. */
    end(): void {
      isOver = true;
    },
    /** Takes the next reference, which is left out: the decoder takes it as a missing one. */
    leaveOut(number: number, commands: readonly MarkingCommand[] | null): void {
      for (const { operation, values } of commands ?? []) {
        if (operation === unused) named.add(number - values[0]! - 1);
        else isOver = true;
      }
      slide();
      kept.push(number);
    },
    /** Takes the next reference; returns its commands. */
    take(number: number, commands: readonly MarkingCommand[] | null): readonly MarkingCommand[] | null {
      isOver ||= commands?.some(({ operation }) => operation !== unused) ?? false;
      if (isOver) return commands;
      const removed = [...named].filter(remove);
      named.clear();
      if (commands === null && removed.length === 0) {
        slide();
        kept.push(number);
        return null;
      }
      const targets = (commands ?? []).map(({ values }) => number - values[0]! - 1);
      removed.push(...targets.map(removeFor).filter((target) => target !== undefined));
      for (let oldest = slide(); oldest !== undefined; oldest = slide()) removed.push(oldest);
      kept.push(number);
      return removed.map((target) => ({ operation: unused, values: [number - target - 1] }));
    },
  };
}
