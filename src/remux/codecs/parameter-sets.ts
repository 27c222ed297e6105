import type { ParameterSet, VideoSyntax } from "./video-syntax.ts";

/** The current parameter sets of a stream. */
export interface ParameterSets {
  /** Returns them in the order in which they were sent. */
  list(): readonly ParameterSet[];
  /** Takes the parameter sets of one access unit; returns whether any has changed. */
  take(units: readonly Buffer[]): boolean;
}

const maxBytes = 65_535;

/** Returns a set as a decoder configuration has it: after its length in two bytes. */
export function withLength({ unit }: ParameterSet): Buffer {
  return Buffer.concat([Buffer.from([unit.length >> 8, unit.length & 0xff]), unit]);
}

export function createParameterSets(syntax: VideoSyntax): ParameterSets {
  const sets = new Map<string, ParameterSet & { content: string }>();
  /** Picture sets depend on their sequence set: another one makes them invalid. */
  const removePicturesBut = (sent: ReadonlySet<string>): void => {
    for (const [name, { level, content }] of sets) {
      if (level === "picture" && !sent.has(content)) sets.delete(name);
    }
  };
  return {
    list: () => [...sets.values()],
    take(units) {
      const sent = new Set(
        units.filter(({ length }) => length <= maxBytes).map((unit) => unit.toString("latin1")),
      );
      let isChanged = false;
      for (const content of sent) {
        const unit = Buffer.from(content, "latin1");
        const set = syntax.identify(unit);
        if (!set) continue;
        const name = `${set.level} ${set.id}`;
        if (sets.get(name)?.content === content) continue;
        if (set.level === "sequence") removePicturesBut(sent);
        sets.delete(name);
        sets.set(name, { ...set, unit, content });
        isChanged = true;
      }
      return isChanged;
    },
  };
}
