import {
  Kind,
  type Static,
  type TObject,
  type TSchema,
  type TUnsafe,
  Type,
  TypeRegistry,
} from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

/**
 * The words that the wire's schemas are built from. Unknown is `null`, never `""` or `0`.
 *
 * TypeBox has no kind of its own for `type: ["string", "null"]` and `enum`; it writes both as `anyOf`,
 * which documents badly and which Fastify's serialiser must validate branch by branch. Hence these two.
 */
const inner = Symbol("nullable");

interface NullableSchema extends TSchema {
  [inner]: TSchema;
}

TypeRegistry.Set<NullableSchema>(
  "Nullable",
  (schema, value) => value === null || Value.Check(schema[inner], value),
);
TypeRegistry.Set<{ enum: readonly unknown[] }>("StringEnum", (schema, value) =>
  schema.enum.includes(value),
);

/** `schema` or `null`; `schema` has a single JSON type. */
export function nullable<T extends TSchema>(
  schema: T,
  description?: string,
): TUnsafe<Static<T> | null> {
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

export function oneOf<const T extends readonly string[]>(
  values: T,
  description: string,
): TUnsafe<T[number]> {
  const schema: unknown = { type: "string", enum: [...values], description, [Kind]: "StringEnum" };
  return schema as TUnsafe<T[number]>;
}

export const nullableText = (description: string) => nullable(Type.String(), description);
export const nullableCount = (description: string) =>
  nullable(Type.Integer({ minimum: 0 }), description);
export const nullableNumber = (description: string) =>
  nullable(Type.Number({ minimum: 0 }), description);
export const time = (description: string) =>
  Type.String({ description, examples: ["2026-01-31T12:00:00.000Z"] });

/** `values` with the whole numbers written in decimal digits made numbers where `schema` wants integers. */
export function withIntegers(
  schema: TObject,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const wanted = Object.hasOwn(schema.properties, name) && schema.properties[name];
      const integer = wanted && wanted["type"] === "integer" && typeof value === "string";
      return [name, integer && /^-?\d{1,15}$/.test(value) ? Number(value) : value];
    }),
  );
}
