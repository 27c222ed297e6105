import { ServiceError } from "../../model/errors.ts";
import type { AudioTags } from "../tags/vorbis-comments.ts";

/** Writes the packets of one codec into a file of its own kind. */
export interface AudioFile {
  /** Returns how long a packet lasts, seconds. */
  add(packet: Uint8Array): number;
  /**
   * Completes the file.
   * @param trimmedOf Returns how much of the end is not presented, if all packets last so long; seconds.
   */
  finish(trimmedOf: (lastedS: number) => number): void;
}

export interface AudioTrack {
  codec: "opus" | "vorbis" | "mp3" | "flac";
  /** As Matroska has it (CodecPrivate): headers of Ogg, metadata of FLAC; of MP3 there is none. */
  configuration: Buffer;
  /** How much is not presented at the start; `null`: what the configuration says. */
  delayS: number | null;
  /** BCP 47; `null`: unknown. */
  language: string | null;
}

/** Opens the file for a track's packets. @throws ServiceError `upstream_invalid` if its configuration is damaged. */
export type OpenAudioFile = (track: AudioTrack) => AudioFile;

export interface AudioFileTarget {
  /** The new file, open for writing. */
  fd: number;
  additions: AudioTags;
  /** Of the source; Infinity: unknown. */
  durationS: number;
  /** The file has other packets than its configuration says. */
  isCut: boolean;
}

/** Returns an `upstream_invalid` error for audio that cannot be read. */
export function damagedAudioError(what: string): ServiceError {
  return new ServiceError("upstream_invalid", `the audio cannot be read: ${what}`);
}

/** Times in Matroska are rounded to milliseconds; shorter pauses come from joining parts. */
export const maxPauseS = 0.05;

/**
 * A file without times plays its packets one after the other.
 * @param lastedS How long all packets last.
 * @param lastS Time of the last packet, from the first one on, seconds.
 * @throws ServiceError `upstream_invalid` if there are pauses between them.
 */
export function assertNoPauses(lastedS: number, lastS: number): void {
  if (lastS - lastedS > maxPauseS) throw damagedAudioError("it has pauses, which a file of its own cannot have");
}
