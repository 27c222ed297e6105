import { nameCodec } from "../../../remux/codec-name.ts";

/** What is known of the samples of an audio track by its codec. */
export interface AudioPackets {
  /** By so many audio may overlap where parts are joined: a part of the last one, and one of priming if its codec has that. */
  overlapping: number;
  /** The first one lasts no time (Vorbis I §1.3.2). */
  isVorbis: boolean;
  /** They are packets of the codec, of which none holds much more than others: PCM has as much in one as its writer likes. */
  isBounded: boolean;
}

const lossless: ReadonlySet<string> = new Set(["fLaC", "alac"]);
const lossy = ["AAC", "MPEG audio", ".mp3", "AC-3", "E-AC-3", "Opus", "Vorbis"];
const bounded: ReadonlySet<string> = new Set([...lossless, ...lossy]);

export function audioPacketsOf(sampleEntry: Uint8Array): AudioPackets {
  const codec = nameCodec(sampleEntry);
  return { overlapping: lossless.has(codec) ? 1 : 2, isVorbis: codec === "Vorbis", isBounded: bounded.has(codec) };
}
