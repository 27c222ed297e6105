import { shorten } from "../net/http-url.ts";
import { invalidManifestError } from "./manifest.ts";

/** A segment's place, from which its address is made. */
export interface SegmentPlace {
  /** In its Period, counted from `startNumber`. */
  number: number;
  /** On the media's own time line, in its timescale. */
  time: bigint;
}

/**
 * Compiles a SegmentTemplate's `media` or `initialization` (ISO/IEC 23009-1 §5.3.9.4.4) for one
 * Representation.
 *
 * @throws ServiceError `upstream_invalid` for unknown identifiers and a `$` without its pair.
 */
export function compileTemplate(
  template: string,
  representation: { id: string; bandwidth: string },
  url: URL,
): (place: SegmentPlace) => string {
  const parts = template.split("$");
  const pieces = parts.map((part, index) => {
    if (index % 2 === 0) return () => part;
    if (index < parts.length - 1) {
      if (part === "") return () => "$";
      if (part === "RepresentationID") return () => representation.id;
      const [, name, width] = /^(Number|Time|Bandwidth)(?:%0?(\d{0,2})d)?$/.exec(part) ?? [];
      const pad = (value: string) => value.padStart(Number(width ?? 0), "0");
      if (name === "Number") return ({ number }: SegmentPlace) => pad(`${number}`);
      if (name === "Time") return ({ time }: SegmentPlace) => pad(`${time}`);
      if (name === "Bandwidth") return () => pad(representation.bandwidth);
    }
    const got = JSON.stringify(shorten(template, 100));
    throw invalidManifestError(
      url,
      `a template may only name $RepresentationID$, $Number$, $Time$, $Bandwidth$ and $$, got ${got}`,
    );
  });
  return (place) => pieces.map((piece) => piece(place)).join("");
}
