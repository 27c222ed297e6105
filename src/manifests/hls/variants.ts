import type { Codecs } from "../attributes.ts";
import type { Attributes } from "./lines.ts";

/** An EXT-X-STREAM-INF. */
export interface Variant {
  attributes: Attributes;
  codecs: Codecs;
  url: URL;
}

/** Whether its CODECS name video. */
export const statesVideo = ({ codecs: { vcodec } }: Variant): boolean => vcodec !== null && vcodec !== "none";

/**
 * If no variant with video states audio, nor an audio group, their CODECS leave it out: they may have their own, and variants that have audio
 * alone are in place of them (RFC 8216bis §4.4.6.2).
 */
export function withPossibleAudio(variants: readonly Variant[]): readonly Variant[] {
  const hasStated = variants.some(({ attributes, codecs: { vcodec, acodec } }) => {
    return attributes.has("AUDIO") || (vcodec !== "none" && acodec !== "none");
  });
  const toPossible = ({ vcodec, acodec, text }: Codecs) => ({
    vcodec,
    acodec: vcodec === "none" ? acodec : null,
    text,
  });
  return hasStated ? variants : variants.map((variant) => ({ ...variant, codecs: toPossible(variant.codecs) }));
}

/** SCORE (RFC 8216bis §4.4.6.2) orders variants if all have one: returns their ranks, above 0. */
export function scoresOf(variants: readonly Variant[]): number[] {
  const scores = variants.map(({ attributes }) => Number.parseFloat(attributes.get("SCORE") ?? ""));
  if (!scores.every((score) => score >= 0)) return [];
  const ranks = new Map([...new Set(scores)].toSorted((a, b) => a - b).map((score, rank) => [score, rank + 1]));
  return scores.map((score) => ranks.get(score) ?? 0);
}
