import { Type } from "@sinclair/typebox";

const tags = "an entity tag, several with commas between them, or `*`";

/**
 * Header fields of conditional and range requests (RFC 9110 §13, §14), for the schemas of routes that follow them.
 * Any text passes: what a route does with one that breaks the rules is not an error.
 */
export const ConditionHeaders = Type.Object({
  "if-match": Type.Optional(Type.String({ description: `${tags}; 412 if none matches` })),
  "if-none-match": Type.Optional(Type.String({ description: `${tags}; 304 if one matches` })),
  range: Type.Optional(
    Type.String({ description: "the bytes to send", examples: ["bytes=0-1023"] }),
  ),
  "if-range": Type.Optional(
    Type.String({ description: "the entity tag without which `Range` is ignored" }),
  ),
});
