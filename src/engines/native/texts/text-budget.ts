import { createKeyedMutex } from "../../../async/keyed-mutex.ts";
import { invalidSubtitlesError, maxCues, maxSubtitleBytes } from "../../../subtitles/text.ts";
import type { TextPart } from "./place-cues.ts";

/** Of all subtitles of a download together, which are in memory at a time. */
const maxTotalBytes = 24 << 20;
/** As long are those of most films. */
const smallBytes = 1 << 20;

/** Counts the bytes of a track while they come. */
export interface ByteCount {
  /** @throws ServiceError `upstream_invalid` if there are more than may come. */
  add(bytes: number): void;
}

/** Bounds what the subtitles of a download take together. */
export class TextBudget {
  #bytesLeft = maxTotalBytes;
  #cuesLeft = maxCues;
  readonly #large = createKeyedMutex();

  /**
   * Lets `read` fetch and read a track, which is kept. It is called again for a track of more than 1 MiB: these are read one at a time.
   *
   * @throws ServiceError `upstream_invalid` for more than 16 MiB, or if all together have more than 24 MiB or 200,000 cues; what `read` rejects with
   */
  async take(read: (count: ByteCount) => Promise<TextPart[]>): Promise<TextPart[]> {
    const small = new BoundedCount(smallBytes);
    try {
      return this.#keep(await read(small), small.bytes);
    } catch (error) {
      if (!small.isExceeded) throw error;
    }
    return this.#large.runExclusive("", async () => {
      const large = new BoundedCount(Math.min(maxSubtitleBytes, this.#bytesLeft));
      return this.#keep(await read(large), large.bytes);
    });
  }

  #keep(parts: TextPart[], bytes: number): TextPart[] {
    const cues = parts.reduce((sum, part) => sum + part.cues.length, 0);
    if (bytes > this.#bytesLeft) throw exceededError(this.#bytesLeft);
    if (cues > this.#cuesLeft)
      throw invalidSubtitlesError(`with the others of the video they have more than ${maxCues} cues`);
    if (cues === 0) return parts;
    this.#bytesLeft -= bytes;
    this.#cuesLeft -= cues;
    return parts;
  }
}

class BoundedCount implements ByteCount {
  bytes = 0;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isExceeded(): boolean {
    return this.bytes > this.#limit;
  }

  add(bytes: number): void {
    this.bytes += bytes;
    if (this.isExceeded) throw exceededError(this.#limit);
  }
}

function exceededError(limit: number) {
  return invalidSubtitlesError(
    limit === maxSubtitleBytes
      ? `they have more than ${maxSubtitleBytes} bytes`
      : `with the others of the video they have more than ${maxTotalBytes} bytes`,
  );
}
