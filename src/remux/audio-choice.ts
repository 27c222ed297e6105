import { findLanguage } from "./language.ts";

/** Decides which of the audio tracks of one stream are read. */
export interface AudioChoice {
  /** Languages were asked for. */
  readonly isAsked: boolean;
  /** Tags that were asked for and are the language of a track. */
  readonly found: ReadonlySet<string>;
  /** Languages of all tracks that there were to choose from. */
  readonly offered: ReadonlySet<string>;
  /** Whether another track of the last stream than its first one is to be played. */
  readonly isOtherFirst: boolean;
  /** Returns those of the tracks with these languages (BCP 47; `null`: unknown): at least one if there is any, at most 20. */
  choose(languages: readonly (string | null)[]): ChosenAudio[];
}

/** What a track of a stream is in the output. */
export interface TrackSlot {
  /** It stays when the tracks of a stream change. */
  slot: string;
  /** As in `TrackFormat`. */
  place: number;
}

export interface ChosenAudio extends TrackSlot {
  /** Of the track in the stream. */
  index: number;
}

/** Of the first audio track of the output. */
const firstSlot = "audio";
const maxTracks = 20;

/**
 * @param asked `original`, which is the first track, and first in the output; `all`; or BCP 47 tags, of which those that no
 * track has are ignored. If no track is left, it is the first.
 */
export function createAudioChoice(asked: readonly string[]): AudioChoice {
  const found = new Set<string>();
  const offered = new Set<string>();
  let isOtherFirst = false;
  return {
    isAsked: !asked.every(isWord),
    found,
    offered,
    get isOtherFirst() {
      return isOtherFirst;
    },
    choose(languages) {
      for (const language of languages) if (language !== null) offered.add(language);
      const indexes = new Set<number>();
      if (asked.includes("original")) indexes.add(0);
      for (const name of asked) {
        if (name === "all") for (const index of languages.keys()) indexes.add(index);
        const index = findLanguage(name, languages);
        if (isWord(name) || index < 0) continue;
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

const isWord = (name: string): boolean => name === "original" || name === "all";

/** The first track alone. */
export const firstAudio: AudioChoice = createAudioChoice([]);
export const allAudio: AudioChoice = createAudioChoice(["all"]);

function slotOf(index: number, languages: readonly (string | null)[]): string {
  const language = languages[index];
  const before = languages.slice(0, index).filter((each) => each === language).length;
  return `${firstSlot} ${language ?? ""} ${before}`;
}
