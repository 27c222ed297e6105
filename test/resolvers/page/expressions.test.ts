import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type AST, parseRegExpLiteral } from "@eslint-community/regexpp";
import { describe, expect, it, onTestFinished } from "vitest";

const src = join(import.meta.dirname, "../../../src");
const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) =>
  /^(resolvers\/page|parsers|manifests|model)\/.*(?<!\.d)\.ts$/.test(file),
);

/** How the expressions start that break the rule below, and why they take linear time all the same. */
const exceptions = new Map([
  [String.raw`"[^"\\]*(?:\\[^]`, "what has no end matches to the end of the text"],
  [String.raw`([^\s"'<>/=][^\s/>=]*)(?:`, "what follows the name may be absent, and its parts start differently"],
  [String.raw`<(?:br|`, "it ends at the next <, where the next match may start"],
  [String.raw`<\/?[a-z][^<>]*>`, "the same"],
  [String.raw`;\s*charset`, "of a header's first 500 characters"],
  [String.raw`;\s*codecs`, "white space after one ; is not after another"],
  [String.raw`display\s*:`, "of a style's first 1,000 characters"],
  [String.raw`\s+[|`, "of a title's first 1,000 characters, without white space in a row"],
  [String.raw`(?:[+!=]=|\+)`, "of 300 characters"],
  [String.raw`^[\w!#$&^.+-]+\/`, "of 200 characters; the parts are divided by a slash"],
  [String.raw`^\s*\[\s*(?:`, "of 200 characters"],
  [String.raw`^\s{0,20}[\w.$]{1,60}`, "of 20,000 characters; the parts are divided by commas"],
  [String.raw`^[\W_]*(?:(?:u?hd`, "of 60 characters; each part starts with a word"],
  [String.raw`^(\d{4})-(\d{1,2})`, "of 100 characters, without white space in a row"],
  [String.raw`^P?(?:0+Y)?`, "of 100 characters"],
  [String.raw`^data:[^,]*?`, "of 1,024 characters"],
  [String.raw`^<\?xml[^>]*?\sencoding`, "of 200 characters"],
  [String.raw`^\s*(\d{1,15})`, "white space is divided by digits"],
  [String.raw`^\s*\d{1,16}\s*$`, "the same"],
  [String.raw`^(\d+)[x*]`, "the digits are divided by a sign"],
  [
    String.raw`\s[\w.-]+:href`,
    "a match starts at white space, which ends the name and the quote ends the value of the one before",
  ],
  [String.raw`^\uFEFF?\s*(?:<`, "what follows may be absent"],
  [String.raw`([^=,]*)(?:=`, "all of it may be absent"],
  [String.raw`^[ \t]*#EXT-X-`, "each line is looked at once"],
  [String.raw`^[ \t]*#EXTINF:`, "the same"],
  [String.raw`^[ \t]*(file|title|length)`, "the same"],
  [
    String.raw`^[a-z\d][a-z\d_*/@-]{0,255}=`,
    "the parts are divided by a sign; what is repeated before the end, at most 255 times",
  ],
  [String.raw`\{\$([\w-]+)\}`, "a match starts at a brace, which ends the one before"],
]);

/** Fewer repetitions are as good as none; a fixed number of them cannot be tried with fewer. */
const mostRepetitions = 100;
const mostFixed = 1_000;

interface Repetition {
  /** Something that can fail follows it. */
  isFollowed: boolean;
  /** It is within another one. */
  isNested: boolean;
}

function repetitionsIn(alternatives: readonly AST.Alternative[], isFollowed = false, isNested = false): Repetition[] {
  return alternatives.flatMap(({ elements }) =>
    elements.flatMap((element, index) => {
      const isBeforeMore = isFollowed || elements.slice(index + 1).some(canFail);
      return repetitionsOf(element, isBeforeMore, isNested);
    }),
  );
}

function repetitionsOf(element: AST.Element, isFollowed: boolean, isNested: boolean): Repetition[] {
  if (element.type === "Quantifier") {
    const isLong = element.max - element.min > mostRepetitions || element.min > mostFixed;
    const inner = repetitionsOf(element.element, true, isNested || isLong);
    return isLong ? [{ isFollowed, isNested }, ...inner] : inner;
  }
  if (!("alternatives" in element)) return [];
  return repetitionsIn(element.alternatives, isFollowed || element.type === "Assertion", isNested);
}

function canFail(element: AST.Element): boolean {
  if (element.type === "Quantifier") return element.min > 0;
  const isGroup = element.type === "Group" || element.type === "CapturingGroup";
  return !isGroup || !element.alternatives.some(({ elements }) => !elements.some(canFail));
}

function isAnchored({ elements: [first] }: AST.Alternative): boolean {
  if (first?.type === "Assertion") return first.kind === "start";
  const isGroup = first?.type === "Group" || first?.type === "CapturingGroup";
  return isGroup && first.alternatives.every(isAnchored);
}

/**
 * Whether an expression takes linear time by its form: what is repeated without end is in no other such repetition; if a match may
 * start anywhere, nothing that can fail follows it, and if only at the start, it is the only one.
 */
function isPlain(expression: RegExp): boolean {
  const { pattern, flags } = parseRegExpLiteral(expression);
  return pattern.alternatives.every((alternative) => {
    const repetitions = repetitionsIn([alternative]);
    if (repetitions.some(({ isNested }) => isNested)) return false;
    const startsAtOnePlace = isAnchored(alternative) && !flags.multiline;
    return startsAtOnePlace ? repetitions.length <= 1 : !repetitions.some(({ isFollowed }) => isFollowed);
  });
}

const literal =
  /(?<=(?:^|[(,=:[!&|?>\s]))\/(?![/*\s])((?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)(?=[\s.,;)\]:])/g;

/** Returns the literals in a file, without those in comments. */
function literalsIn(file: string): RegExp[] {
  const text = readFileSync(join(src, file), "utf8").replaceAll(/^\s*(?:\/\*\*|\*|\/\/).*$/gm, "");
  return [...text.matchAll(literal)].map(([, source = "", flags]) => new RegExp(source, flags));
}

/** Has no expressions of that kind. Loaded once more, it would replace the kinds that TypeBox knows, also for the tests that follow. */
const loadedOnce = "model/schema.ts";

/** Returns the expressions that a module puts together when it is loaded. */
async function expressionsMadeBy(file: string): Promise<RegExp[]> {
  if (file === loadedOnce) return [];
  const made: RegExp[] = [];
  const { RegExp: original } = globalThis;
  onTestFinished(() => void (globalThis.RegExp = original));
  globalThis.RegExp = new Proxy(original, {
    construct(target, [pattern, flags]: [string | RegExp, string?]) {
      made.push(new target(pattern, flags));
      return new target(pattern, flags);
    },
  });
  await import(/* @vite-ignore */ `${join(src, file)}?expressions`);
  globalThis.RegExp = original;
  return made;
}

describe("the expressions on the text of pages and manifests, and in the model, which also parses headers of requests", () => {
  it("are told: linear ones from others", () => {
    const linear = [/^\s*a/, /a\s*/, /^a[^b]*b|c/, /a{1,50}b/, /[ab]*c?/, /(?:a|b)c+/];
    expect(linear.filter((each) => !isPlain(each))).toEqual([]);
    const others = [
      /^[\w-]*\d[\w-]*$/,
      /\s+$/,
      /a[^b]*b/,
      /^(?:a+)+$/,
      /"(?:\\.)*"/,
      /,(?=\s*\])/,
      /\/+$/,
      /^\s*\s*a/,
      /a+b/y,
    ];
    expect(others.filter(isPlain)).toEqual([]);
  });

  it("take linear time, literals and those that are put together", async () => {
    const found = files.flatMap(literalsIn);
    expect(found.length).toBeGreaterThan(100);
    const modules = files.filter((file) => !file.endsWith("-program.ts"));
    for (const file of modules) found.push(...(await expressionsMadeBy(file)));
    expect(found.length).toBeGreaterThan(115);
    const suspects = found.filter((each) => !isPlain(each)).map(({ source }) => source);
    const starts = [...exceptions.keys()];
    expect(suspects.filter((source) => !starts.some((start) => source.startsWith(start)))).toEqual([]);
    expect(starts.filter((start) => !suspects.some((source) => source.startsWith(start)))).toEqual([]);
  });
});
