/**
 * Returns the OpenAPI document with every schema of an object that has a `title` once, among its components, under that
 * name, so that clients that are generated from it have a type of that name.
 *
 * @throws Error if two different schemas have the same title.
 */
export function nameSchemas(document: object): object {
  const schemas: Record<string, object> = {};

  function visit(node: unknown): unknown {
    if (Array.isArray(node)) return node.map(visit);
    if (typeof node !== "object" || node === null) return node;
    const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)]));
    return isNamed(copy) ? refer(copy) : copy;
  }

  /** Nothing but its description depends on where a schema is used. */
  function refer({ type, description, ...schema }: NamedSchema): object {
    const name = schema.title;
    const found = schemas[name];
    const named = { type: "object", ...schema };
    if (found !== undefined && JSON.stringify(found) !== JSON.stringify(named)) {
      throw new Error(`two schemas have the title ${name}`);
    }
    schemas[name] = named;
    const described = description === undefined ? {} : { description };
    const reference = { $ref: `#/components/schemas/${name}` };
    return type === "object" ? { ...reference, ...described } : { anyOf: [reference, { type: "null" }], ...described };
  }

  const { components, ...rest } = visit(document) as { components?: { schemas?: object } };
  return { ...rest, components: { ...components, schemas: { ...components?.schemas, ...schemas } } };
}

interface NamedSchema {
  title: string;
  properties: object;
  /** `"object"`, or also `"null"`. */
  type: unknown;
  description?: string;
}

function isNamed(node: object): node is NamedSchema {
  return "properties" in node && "title" in node && typeof node.title === "string";
}
