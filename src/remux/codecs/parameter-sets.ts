import type { ParameterSet, VideoSyntax } from "./video-syntax.ts";

/** The parameter sets that hold at this place of a stream. */
export interface ParameterSets {
  /** Those that were sent last are last. */
  list(): readonly ParameterSet[];
  /** Takes those of one access unit; whether anything is another than before. */
  take(units: readonly Buffer[]): boolean;
}

/** What a decoder's configuration can hold of one set: its length has 16 bits. */
const maxBytes = 65_535;

export function createParameterSets(syntax: VideoSyntax): ParameterSets {
  const sets = new Map<string, ParameterSet & { content: string }>();
  const contents = new Set<string>();
  const remove = (name: string): void => {
    contents.delete(sets.get(name)?.content ?? "");
    sets.delete(name);
  };
  /** Sets of pictures mean nothing without the sequence that they were made for. */
  const removePicturesBut = (sent: ReadonlySet<string>): void => {
    for (const [name, { level, content }] of sets) {
      if (level === "picture" && !sent.has(content)) remove(name);
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
        if (contents.has(content)) continue;
        const unit = Buffer.from(content, "latin1");
        const set = syntax.identify(unit);
        if (!set) continue;
        if (set.level === "sequence") removePicturesBut(sent);
        const name = `${set.level} ${set.id}`;
        remove(name);
        sets.set(name, { ...set, unit, content });
        contents.add(content);
        isChanged = true;
      }
      return isChanged;
    },
  };
}
