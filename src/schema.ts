import { type TSchema, Type } from "@sinclair/typebox";

/** The words that the wire's schemas are built from: absent is `null`, never `""` or `0`. */

export function nullable<T extends TSchema>(schema: T, description?: string) {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description });
}

export function oneOf<const T extends readonly string[]>(values: T, description: string) {
  return Type.Unsafe<T[number]>({ type: "string", enum: [...values], description });
}

export const text = (description: string) => nullable(Type.String(), description);
export const count = (description: string) => nullable(Type.Integer({ minimum: 0 }), description);
export const amount = (description: string) => nullable(Type.Number({ minimum: 0 }), description);
export const time = (description: string) => Type.String({ format: "date-time", description });
