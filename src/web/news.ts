import { signal, type ReadonlySignal } from "@preact/signals";

/** What has happened, to be spoken by screen readers as soon as they have time. */
export interface News {
  readonly text: ReadonlySignal<string>;
  tell(sentence: string): void;
}

/** Long enough to gather what happens at once. */
const gatherMs = 500;

/** More of them than can be listened to are counted. */
const maxSentences = 3;

export function createNews(): News {
  const text = signal("");
  const sentences: string[] = [];
  return {
    text,
    tell(sentence) {
      if (sentences.push(sentence) > 1) return;
      setTimeout(() => {
        const told = sentences.splice(0);
        text.value =
          told.length > maxSentences ? `${told.length} downloads have changed.` : told.join(" ");
      }, gatherMs);
    },
  };
}
