import type { TObject } from "@sinclair/typebox";
import { TypeCompiler, type ValueError, ValueErrorType } from "@sinclair/typebox/compiler";
import type { FastifySchemaCompiler } from "fastify";
import { ServiceError } from "../errors.ts";
import { withIntegers } from "../schema.ts";

/**
 * Checks body, query and headers against their TypeBox schemas. Text from the query is taken as an
 * integer where the schema wants one; a body is taken as it is. Unknown members pass.
 *
 * @throws ServiceError `invalid_request` with one fault for each member that breaks its rule.
 */
export const validatorCompiler: FastifySchemaCompiler<TObject> = ({ schema, httpPart }) => {
  const check = TypeCompiler.Compile(schema);
  const part = httpPart === "querystring" ? "query" : (httpPart ?? "input");
  return (input) => {
    const value = httpPart === "querystring" ? withIntegers(schema, input) : input;
    // A value that is given back costs: Fastify then copies the headers at every look at them.
    if (check.Check(value)) return value === input ? true : { value };
    const faults = firstFaults(check.Errors(value)).map((error) => ({
      pointer: error.path,
      detail: `${ruleOf(error, part)}, got ${shown(error.value)}`,
    }));
    const [first] = faults;
    const where = first?.pointer === "" ? `the ${part}` : `${first?.pointer} in the ${part}`;
    return { error: new ServiceError("invalid_request", `${where} ${first?.detail}`, { faults }) };
  };
};

/** TypeBox reports a missing member twice, once with each rule that it breaks. */
function firstFaults(errors: Iterable<ValueError>): ValueError[] {
  const byPath = new Map<string, ValueError>();
  for (const error of errors) {
    if (!byPath.has(error.path)) byPath.set(error.path, error);
    if (byPath.size === 20) break;
  }
  return [...byPath.values()];
}

function ruleOf({ type, schema, message, value }: ValueError, part: string): string {
  if (type === ValueErrorType.ObjectRequiredProperty) return "is required";
  if (part === "query" && Array.isArray(value)) return "must be given once";
  if (Array.isArray(schema["enum"])) return `must be one of ${schema["enum"].join(", ")}`;
  if (typeof schema["minimum"] === "number" && typeof schema["maximum"] === "number") {
    return `must be an ${schema["type"]} from ${schema["minimum"]} to ${schema["maximum"]}`;
  }
  if (schema["type"] === "string" && typeof value === "string") {
    return `must be ${schema["minLength"]} to ${schema["maxLength"]} characters long`;
  }
  return `must be: ${message.replace(/^Expected /, "")}`;
}

function shown(value: unknown): string {
  // Fastify gives null also for a body that is not there.
  if (value === undefined || value === null) return "null or nothing";
  const json = JSON.stringify(value);
  return json.length > 120 ? `${json.slice(0, 120)}…` : json;
}
