import { createLanguageFinder } from "./language.ts";

/** What a track of a stream is in the output. */
export interface TrackSlot {
  /** Stays the same when the tracks of a stream change. */
  slot: string;
  /** As in `TrackFormat`. */
  place: number;
}

/** Of the first audio track of the output. */
const firstSlot = "audio";
const maxTracks = 20;

export type AudioChoice = ReturnType<typeof createAudioChoice>;

/**
 * Decides which of the audio tracks of one stream are read.
 * @param asked `original`: the first track, which is also first in the output; `all`; or BCP 47 tags, of which those that no
 * track has are ignored. If that leaves no track, the first one is read.
 */
export function createAudioChoice(asked: readonly string[]) {
  const found = new Set<string>();
  const offered = new Set<string>();
  let isOtherFirst = false;
  return {
    /** Languages were asked for. */
    isAsked: asked.some(isLanguage),
    /** Tags that were asked for and are the language of a track. */
    found: found as ReadonlySet<string>,
    /** Languages of all tracks to choose from. */
    offered: offered as ReadonlySet<string>,
    /** Whether a track other than the first of the last stream is to be played. */
    get isOtherFirst(): boolean {
      return isOtherFirst;
    },
    /**
     * Returns those of the tracks with these languages (BCP 47; `null`: unknown), by their indexes: at least one if there is any, at
     * most 20.
     */
    choose(languages: readonly (string | null)[]): (TrackSlot & { index: number })[] {
      for (const language of languages) if (language !== null) offered.add(language);
      const findLanguage = createLanguageFinder(languages);
      const indexes = new Set<number>();
      if (asked.includes("original")) indexes.add(0);
      for (const name of asked) {
        if (name === "all") for (const index of languages.keys()) indexes.add(index);
        const index = findLanguage(name);
        if (!isLanguage(name) || index < 0) continue;
        indexes.add(index);
        found.add(name);
      }
      if (indexes.size === 0) indexes.add(0);
      const chosen = [...indexes].filter((index) => index < languages.length).slice(0, maxTracks);
      isOtherFirst = (chosen[0] ?? 0) > 0;
      return chosen.map((index, place) => ({ index, place, slot: place === 0 ? firstSlot : slotOf(index, languages) }));
    },
  };
}

/** Whether what was asked for is a language, not a word for tracks of any. */
export const isLanguage = (name: string): boolean => name !== "original" && name !== "all";

/** The first track alone. */
export const firstAudio = createAudioChoice([]);
export const allAudio = createAudioChoice(["all"]);

function slotOf(index: number, languages: readonly (string | null)[]): string {
  const language = languages[index];
  const before = languages.slice(0, index).filter((each) => each === language).length;
  return `${firstSlot} ${language ?? ""} ${before}`;
}
