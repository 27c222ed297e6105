import { SerializerSelector } from "@fastify/fast-json-stringify-compiler";
import type { FastifyServerOptions } from "fastify";

type BuildSerializer = NonNullable<
  NonNullable<NonNullable<FastifyServerOptions["schemaController"]>["compilersFactory"]>["buildSerializer"]
>;

/**
 * Creates a factory of Fastify's own serializers for an app. Each is compiled for its first response: a process needs few of all.
 * Responses that refer to one schema of the app share a serializer.
 */
export function createSerializers(): BuildSerializer {
  const byReference = new Map<string, (data: unknown) => string>();
  return (schemas, options) => {
    const compile = SerializerSelector()(schemas, options);
    return (route) => {
      const { $ref: reference } = route.schema as { $ref?: string };
      let serialize: ReturnType<typeof compile> | undefined;
      return (data) => {
        serialize ??= reference ? byReference.getOrInsertComputed(reference, () => compile(route)) : compile(route);
        return serialize(data);
      };
    };
  };
}
