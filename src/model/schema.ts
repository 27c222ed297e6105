import { Kind, type Static, type TObject, type TSchema, type TUnsafe, Type, TypeRegistry } from "@sinclair/typebox";
import { Value, type ValueError, ValueErrorType } from "@sinclair/typebox/value";

// TypeBox writes nullable types and enumerations as `anyOf`, which is hard to read in OpenAPI and which Fastify's
// serialiser must validate branch by branch. These two kinds are `type: ["string", "null"]` and `enum`.
const inner = Symbol("nullable");

interface NullableSchema extends TSchema {
  [inner]: TSchema;
}

TypeRegistry.Set<NullableSchema>("Nullable", (schema, value) => value === null || Value.Check(schema[inner], value));
TypeRegistry.Set<{ enum: readonly unknown[] }>("StringEnum", (schema, value) => schema.enum.includes(value));

/** Returns the schema of a value that matches `schema`, which has a single JSON type, or is `null`. */
export function nullable<T extends TSchema>(schema: T, description?: string): TUnsafe<Static<T> | null> {
  const { type, enum: values } = schema as { type?: string; enum?: unknown[] };
  const nullableSchema: unknown = {
    ...schema,
    type: [type, "null"],
    ...(values && { enum: [...values, null] }),
    ...(description !== undefined && { description }),
    [Kind]: "Nullable",
    [inner]: schema,
  };
  return nullableSchema as TUnsafe<Static<T> | null>;
}

/** Returns the schema of a string that is one of `values`. */
export function oneOf<const T extends readonly string[]>(values: T, description: string): TUnsafe<T[number]> {
  const schema: unknown = { type: "string", enum: [...values], description, [Kind]: "StringEnum" };
  return schema as TUnsafe<T[number]>;
}

/**
 * Returns the same schema in TypeBox's own kinds. TypeBox compiles these to one function; it interprets ours,
 * which takes ten times as long.
 */
export function withNativeKinds(schema: TSchema): TSchema {
  if (isNullable(schema)) return Type.Union([withNativeKinds(schema[inner]), Type.Null()]);
  const { enum: values, properties, patternProperties, items } = schema;
  if (schema[Kind] === "StringEnum") return Type.Union(values.map((v: string) => Type.Literal(v)));
  return {
    ...schema,
    ...(properties && { properties: mapSchemas(properties) }),
    ...(patternProperties && { patternProperties: mapSchemas(patternProperties) }),
    ...(items && { items: withNativeKinds(items) }),
  };
}

function isNullable(schema: TSchema): schema is NullableSchema {
  return schema[Kind] === "Nullable";
}

function mapSchemas(schemas: Record<string, TSchema>): Record<string, TSchema> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withNativeKinds(schema)]));
}

/** Returns the schema of a string or `null`. */
export const nullableText = (description: string) => nullable(Type.String(), description);

/** Returns the schema of an integer of at least 0, or `null`. */
export const nullableCount = (description: string) => nullable(Type.Integer({ minimum: 0 }), description);

/** Returns the schema of a number of at least 0, or `null`. */
export const nullableNumber = (description: string) => nullable(Type.Number({ minimum: 0 }), description);

/** Returns the schema of a member that is a string or absent. */
export const optionalText = (description: string) => Type.Optional(Type.String({ description }));

/** Returns the schema of a member that is a boolean or absent. */
export const optionalFlag = (description: string) => Type.Optional(Type.Boolean({ description }));

/** Returns the schema of an RFC 3339 time. */
export const time = (description: string) => Type.String({ description, examples: ["2026-01-31T12:00:00.000Z"] });

/** Returns the value that is written in JSON; undefined if the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns what a value of an enumeration or of an integer with bounds must be; undefined for another schema. */
export function ruleOf(schema: TSchema): string | undefined {
  const { type, enum: values, minimum, maximum } = schema;
  if (Array.isArray(values)) return `one of ${values.join(", ")}`;
  return type === "integer" ? `an integer from ${minimum} to ${maximum}` : undefined;
}

/** Returns what a value breaks: `must be a boolean`. */
export function brokenRule({ type, schema, value }: ValueError): string {
  if (type === ValueErrorType.ObjectRequiredProperty) return "is required";
  const variants: readonly Variant[] | undefined = schema["anyOf"];
  if (variants !== undefined) return `must be ${variants.map(nameOf).join(" or ")}`;
  const rule = ruleOf(schema);
  if (rule !== undefined) return `must be ${rule}`;
  if (Array.isArray(value) && schema["type"] === "array") {
    return `must have ${schema["minItems"] ?? 0} to ${schema["maxItems"]} items`;
  }
  if (typeof value === "string" && schema["pattern"] !== undefined && value.length <= schema["maxLength"]) {
    return isTextExamples(schema["examples"])
      ? `must be written as in ${schema["examples"].map((example) => JSON.stringify(example)).join(" or ")}`
      : `must match ${schema["pattern"]}`;
  }
  if (isTime(schema)) {
    const least =
      schema["minimum"] !== undefined ? `from ${schema["minimum"]}` : `over ${schema["exclusiveMinimum"]}, up`;
    return `must be a number of seconds ${least} to ${schema["maximum"]}`;
  }
  if (schema["type"] === "string" && typeof value === "string") {
    return `must be ${schema["minLength"] ?? 1} to ${schema["maxLength"]} characters long`;
  }
  return `must be ${nameOf({ type: schema["type"], const: schema["const"] })}`;
}

/** Times in seconds are the only numbers with a limit that are no integers. */
const isTime = ({ type, maximum }: TSchema | Variant): boolean => type === "number" && maximum !== undefined;

function isTextExamples(examples: unknown): examples is string[] {
  return Array.isArray(examples) && examples.length > 0 && examples.every((example) => typeof example === "string");
}

function nameOf(schema: Variant): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const name = isTime(schema) ? "number of seconds" : String(schema.type);
  if (name === "null") return name;
  return `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`;
}

/** Returns the errors of the variant of a union that the value was meant to be, by its type; else the error itself. */
export function innermost(error: ValueError): ValueError[] {
  if (error.type !== ValueErrorType.Union) return [error];
  const variants: readonly Variant[] = error.schema["anyOf"];
  const meant = variants.findIndex((variant) => variant.const === undefined && variant.type === typeOf(error.value));
  return meant === -1 ? [error] : [...error.errors[meant]!].flatMap(innermost);
}

/** A schema that is one of several. */
interface Variant {
  type?: unknown;
  /** The only value that it allows. */
  const?: unknown;
  maximum?: unknown;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/**
 * Returns a copy of `values` in which decimal digits are parsed to a number wherever `schema` has an
 * integer; other text stays as it is, for the validator to refuse.
 */
export function withIntegers(schema: TObject, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const wanted = Object.hasOwn(schema.properties, name) && schema.properties[name];
      const integer = wanted && wanted["type"] === "integer" && typeof value === "string";
      return [name, integer && /^-?\d{1,15}$/.test(value) ? Number(value) : value];
    }),
  );
}

/** A BCP 47 tag. RFC 5646 §4.4.1: software should allow 35 characters. */
export const LanguageTag = Type.String({
  pattern: "^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8}){0,8}$",
  maxLength: 35,
  examples: ["en", "pt-BR"],
});

/**
 * Returns the one of `known` that `name` most likely means: itself or a misspelling of it, its words in another order, or
 * its first or last words alone; undefined: none.
 */
export function findLikely(name: string, known: readonly string[]): string | undefined {
  const words = wordsOf(name);
  const letters = words.join("");
  const sorted = words.toSorted().join();
  const isSame = (other: readonly string[]) => other.toSorted().join() === sorted || isNear(letters, other.join(""));
  const isPart = (other: string) => letters.length >= 5 && (other.startsWith(letters) || other.endsWith(letters));
  return known.find((other) => isSame(wordsOf(other))) ?? known.find((other) => isPart(wordsOf(other).join("")));
}

/** What yt-dlp, MeTube and cobalt call an option of a task, and other services a parameter, in lower case without separators. */
const namesElsewhere: Readonly<Record<string, readonly string[]>> = {
  max_height: ["quality", "res", "resolution", "videoquality"],
  preferred_codecs: ["codec", "vcodec", "videocodec", "youtubevideocodec"],
  audio_only: ["extractaudio", "audioformat", "downloadmode"],
  subtitles: ["subs", "writesubs", "writesubtitles", "embedsubs", "sublangs", "subtitleslangs"],
  ranges: ["downloadsections", "downloadranges", "sections"],
  skip: ["sponsorblock", "sponsorblockremove"],
  embed: ["embedmetadata", "embedchapters", "embedthumbnail", "addmetadata"],
  entries: ["playlist", "noplaylist", "playlistitems", "playlistitemlimit"],
  if_exists: ["downloadarchive", "overwrite", "overwrites"],
  cursor: ["page", "offset"],
  limit: ["perpage", "pagesize"],
};

/** As `findLikely`, but the names that other programs use count as well. */
export function findLikelyName(name: string, known: readonly string[]): string | undefined {
  const letters = wordsOf(name).join("");
  return findLikely(name, known) ?? known.find((own) => namesElsewhere[own]?.includes(letters));
}

/** Returns the one of `names` that a missing `known` most likely was written as; undefined: none. */
export function findMisspelling(known: string, names: readonly string[]): string | undefined {
  const isSlip = (name: string) => Math.abs(name.length - known.length) <= 1 && distance(name, known) <= 1;
  return names.find((name) => findLikely(name, [known]) !== undefined || isSlip(name.toLowerCase()));
}

/** `max_height`, `maxHeight` and `Max-Height` have the same. */
function wordsOf(name: string): string[] {
  const separated = name.slice(0, 100).replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_");
  return separated.toLowerCase().split(/[_\s-]+/);
}

/**
 * Whether at most every fourth letter of `known` is changed, left out, added, or swapped with the next one, or only its end is another one, as
 * in `status` for `state`.
 */
function isNear(name: string, known: string): boolean {
  const most = Math.floor(known.length / 4);
  if (Math.abs(name.length - known.length) > most) return false;
  return distance(name, known) <= most || (known.length >= 5 && name.startsWith(known.slice(0, -1)));
}

/** Returns the distance of Damerau and Levenshtein (optimal string alignment). */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      next[j] = Math.min(
        row[j]! + 1,
        next[j - 1]! + 1,
        row[j - 1]! + (isSame ? 0 : 1),
        isSwapped ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
