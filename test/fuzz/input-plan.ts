import * as fc from "fast-check";
import { anyCharacter } from "../any-character.ts";

/**
 * A text as a list of parts, each repeated: short to print when a run fails, megabytes in the run, and
 * shrunk in both directions.
 */
type InputPlan = readonly { text: string; times: number }[];

const maxLength = 1_500_000;

/** Returns plans of these parts; some repeat a part until the text is over a megabyte. */
export function inputPlans(...parts: fc.Arbitrary<string>[]): fc.Arbitrary<InputPlan> {
  const times = fc.oneof(
    { weight: 40, arbitrary: fc.constant(1) },
    { weight: 10, arbitrary: fc.integer({ min: 0, max: 50 }) },
    { weight: 1, arbitrary: fc.constantFrom(1_000, 30_000, maxLength) },
  );
  return fc.array(fc.record({ text: fc.oneof(...parts), times }), { maxLength: 40, size: "max" });
}

/** Returns the text of a plan, at most 1.5 M characters. */
export function render(plan: InputPlan): string {
  let text = "";
  for (const part of plan) {
    const fitting = Math.floor((maxLength - text.length) / Math.max(part.text.length, 1));
    text += part.text.repeat(Math.max(0, Math.min(part.times, fitting)));
  }
  return text;
}

/** Returns one of `samples` with some parts replaced. */
export function mutations(samples: readonly string[], inserts: fc.Arbitrary<string>) {
  const edit = fc.record({ at: fc.nat(4_000), drop: fc.nat(30), insert: inserts });
  return fc
    .record({ sample: fc.constantFrom(...samples), edits: fc.array(edit, { maxLength: 8 }) })
    .map(({ sample, edits }) =>
      edits.reduce((text, { at, drop, insert }) => {
        const start = text.length === 0 ? 0 : at % text.length;
        return text.slice(0, start) + insert + text.slice(start + drop);
      }, sample),
    );
}

/** Text that no grammar expects: any Unicode, control characters, lone surrogates. */
export const junk = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 30 }),
  fc.string({ maxLength: 30 }),
  fc.constantFrom(
    ...'\0|\uFEFF|\uD800|\u2028|\r|\r\n|\n|\t|\'|"|""|<|>|&|&amp;|&#0;|&#x10FFFF;|{$|{$a}|-1|0|1e999|NaN|null|__proto__|constructor|../|//|http:|%00|😀'.split(
      "|",
    ),
  ),
);

/** URLs, valid and invalid. */
export const urls = fc.oneof(
  fc.constantFrom(
    "a.m3u8",
    "/v/1.mp4",
    "//cdn.example.com/x.mpd",
    "https://example.com/e/1",
    "http://user:pass@example.com/",
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "http://[::1",
    "https://example.com:99999/",
    "?q",
    "#f",
    "",
  ),
  fc.webUrl(),
  junk,
);
