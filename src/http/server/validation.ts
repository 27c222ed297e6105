import type { TObject, TSchema } from "@sinclair/typebox";
import { TypeCompiler, type ValueError, ValueErrorType } from "@sinclair/typebox/compiler";
import { ValuePointer } from "@sinclair/typebox/value";
import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler, HookHandlerDoneFunction } from "fastify";
import { inputError, type InputFault, ServiceError } from "../../model/errors.ts";
import {
  brokenRule,
  findLikely,
  findLikelyName,
  findMisspelling,
  innermost,
  withIntegers,
} from "../../model/schema.ts";
import { TaskOptions } from "../../model/task.ts";

/**
 * Validates body, query and headers against their TypeBox schemas. Query parameters are parsed (`parseParameters`); nothing
 * else is converted, and unknown members are allowed unless the schema excludes
 * them. Requests fail with ServiceError `invalid_request`, with a fault for each of the first 20 members that break a rule.
 */
export const validatorCompiler: FastifySchemaCompiler<TObject> = ({ schema, httpPart }) => {
  const check = TypeCompiler.Compile(schema);
  const part = httpPart === "querystring" ? "query" : (httpPart ?? "input");
  return (input) => {
    const value = httpPart === "querystring" ? parseParameters(schema, input) : input;
    if (value instanceof ServiceError) return { error: value };
    // Returning a value is slower: Fastify then copies the headers on every access.
    if (check.Check(value)) return value === input ? true : { value };
    const faults = firstFaults(check.Errors(value)).map((error) => ({
      pointer: error.path.slice(0, 200),
      detail:
        unknownName(error) ??
        misspelling(error, schema, value) ??
        `${brokenRule(error)}${asExample(error, part)}, got ${shown(error)}`,
    }));
    return { error: inputError(part, ...faults) };
  };
};

/**
 * Returns the parameters of a query as their schemas want them: text as it is, decimal digits as an integer, all else from
 * JSON. What cannot be parsed stays text, for the validator to refuse. Returns an error if one is given several times.
 */
function parseParameters(schema: TObject, input: Readonly<Record<string, unknown>>) {
  const known = Object.entries(input).filter(([name]) => Object.hasOwn(schema.properties, name));
  const repeated = known.filter(([, value]) => Array.isArray(value));
  if (repeated.length > 0) {
    const faultOf = ([name, value]: [string, unknown]) => ({
      pointer: `/${name}`,
      detail: `must be given once, got ${cut(JSON.stringify(value))}`,
    });
    return inputError("query", ...repeated.map(faultOf));
  }
  const parsed = known.map(([name, value]) => [name, fromJson(schema.properties[name]!, value)]);
  return withIntegers(schema, { ...input, ...Object.fromEntries(parsed) });
}

function fromJson(schema: TSchema, value: unknown): unknown {
  if (!isWrittenInJson(schema) || typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function isWrittenInJson({ type }: TSchema): boolean {
  return type !== "string" && type !== "integer";
}

/** Returns the first error of each member: TypeBox reports a missing one twice, once for each rule. */
function firstFaults(errors: Iterable<ValueError>): ValueError[] {
  const byPath = new Map<string, ValueError>();
  for (const found of errors) {
    for (const error of innermost(found)) {
      if (!byPath.has(error.path)) byPath.set(error.path, error);
    }
    if (byPath.size >= 20) break;
  }
  return [...byPath.values()].slice(0, 20);
}

/** Says what may be meant, if it is the name of a member that is wrong. */
function unknownName({ type, schema, path }: ValueError): string | undefined {
  if (type !== ValueErrorType.ObjectAdditionalProperties) return undefined;
  const parent = path.slice(0, path.lastIndexOf("/"));
  const known = Object.keys(schema["properties"] as object);
  const likely = findLikelyName(path.slice(parent.length + 1), known);
  return likely === undefined
    ? `is unknown, must be one of ${known.join(", ")}`
    : `is unknown; did you mean ${parent}/${likely}?`;
}

/** Says what may be misspelt, if a member is missing. */
function misspelling({ type, path }: ValueError, { properties }: TObject, given: unknown): string | undefined {
  if (type !== ValueErrorType.ObjectRequiredProperty) return undefined;
  const parent = path.slice(0, path.lastIndexOf("/"));
  const isMeant = (name: string) => parent === "" && Object.hasOwn(properties, name);
  const others = comparedNames(ValuePointer.Get(given, parent)).filter((other) => !isMeant(other));
  const written = findMisspelling(path.slice(parent.length + 1), others);
  if (path === "/url" && written === "urls") return 'is required; for several URLs, POST /tasks/batch takes "urls"';
  return written && `is required; did you misspell it as ${cut(JSON.stringify(written))}?`;
}

/** Returns how a list or an object is written, and a parameter of a query that is no text. */
function asExample({ schema, path }: ValueError, part: string): string {
  if (!isWrittenInJson(schema)) return "";
  const isParameter = part === "query" && path.lastIndexOf("/") === 0;
  if (isParameter && schema["type"] === "boolean") return ": true or false";
  const examples = ((schema["examples"] ?? []) as unknown[]).map((example) => JSON.stringify(example));
  if (examples.length === 0) return "";
  return isParameter ? ` in JSON, as in ${path.slice(1)}=${examples[0]}` : `, as in ${examples.join(" or ")}`;
}

function shown({ path, value }: ValueError): string {
  if (value === undefined) return "nothing";
  // Fastify passes null for a missing body too.
  if (value === null && path === "") return "null or no body";
  // JSON has no Infinity, which 1e999 is read as.
  return typeof value === "number" ? `${value}` : cut(JSON.stringify(value));
}

function cut(json: string): string {
  return json.length > 120 ? `${json.slice(0, 120)}…` : json;
}

const optionNames = Object.keys(TaskOptions.properties);

interface RouteSchema {
  tags?: string[];
  querystring?: { properties: object };
  body?: { properties: object };
}

/**
 * Makes the routes of tasks and pages that are registered after it refuse misspelt names (ServiceError `invalid_request`). A query
 * parameter or a member of a body is refused if it has no meaning and its name is nearly one that has, or nearly that of an option of a
 * task; a parameter also if other services use its name. All others are ignored.
 */
export function refuseMistakenNames(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    const { tags = [], querystring, body } = (route.schema ?? {}) as RouteSchema;
    if (!tags.includes("tasks") && !tags.includes("info")) return;
    const parameters = Object.keys(querystring?.properties ?? {});
    const members = body && Object.keys(body.properties);
    const refuse = (request: FastifyRequest, _reply: unknown, done: HookHandlerDoneFunction): void => {
      const mistakes = findMistakes(request.query as object, parameters, "query");
      done(mistakes ?? (members && findMistakes(request.body as object, members, "body")));
    };
    route.preHandler = [...[route.preHandler ?? []].flat(), refuse];
  });
}

/** Returns the names of members or parameters that are compared with others: a body may have thousands. */
const comparedNames = (values: object): string[] => Object.keys(values).slice(0, 100);

function findMistakes(values: object, own: readonly string[], part: "body" | "query"): ServiceError | undefined {
  const faults: InputFault[] = [];
  for (const name of comparedNames(values)) {
    if (own.includes(name) || faults.length === 20) continue;
    const likely = likelyPointer(name, own, part);
    if (likely !== undefined) {
      const pointer = `/${name.slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1")}`;
      faults.push({ pointer, detail: `has no meaning; did you mean ${likely}?` });
    }
  }
  return faults.length === 0 ? undefined : inputError(part, ...faults);
}

function likelyPointer(name: string, own: readonly string[], part: "body" | "query"): string | undefined {
  const ownName = findLikelyName(name, own);
  if (ownName !== undefined) return `/${ownName}`;
  const option = findLikely(name, optionNames);
  if (option === undefined) return undefined;
  return part === "body" ? `/options/${option}` : `/options/${option} in the body of POST /tasks/`;
}
