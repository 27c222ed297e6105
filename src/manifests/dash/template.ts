import { invalidManifestError } from "../manifest.ts";

/** The variables of a segment's URL. */
export interface SegmentNumbers {
  /** In its Period, counting from `startNumber`. */
  number: number;
  /** On the media's own timeline, in ticks. */
  time: bigint;
}

/**
 * Compiles a SegmentTemplate's `media` or `initialization` (ISO/IEC 23009-1 §5.3.9.4.4) for one
 * Representation into a function that returns a URL reference.
 *
 * @throws ServiceError `upstream_invalid` for an unknown identifier or an unpaired `$`.
 */
export function compileTemplate(
  template: string,
  representation: { id: string; bandwidth: string },
  url: URL,
): (numbers: SegmentNumbers) => string {
  const parts = template.split("$");
  const values = parts.map((part, index) => {
    if (index % 2 === 0) return () => part;
    if (index < parts.length - 1) {
      if (part === "") return () => "$";
      if (part === "RepresentationID") return () => representation.id;
      const [, name, width] = /^(Number|Time|Bandwidth)(?:%0?(\d{0,2})d)?$/.exec(part) ?? [];
      const pad = (value: string) => value.padStart(Number(width ?? 0), "0");
      if (name === "Number") return ({ number }: SegmentNumbers) => pad(`${number}`);
      if (name === "Time") return ({ time }: SegmentNumbers) => pad(`${time}`);
      if (name === "Bandwidth") return () => pad(representation.bandwidth);
    }
    const rule =
      "a template may only name $RepresentationID$, $Number$, $Time$, $Bandwidth$ and $$";
    throw invalidManifestError(url, rule, template);
  });
  return (numbers) => values.map((value) => value(numbers)).join("");
}
