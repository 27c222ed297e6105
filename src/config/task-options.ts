import { Type } from "@sinclair/typebox";
import { Value, type ValueError } from "@sinclair/typebox/value";
import { messageOf } from "../model/errors.ts";
import { brokenRule, findLikelyName, innermost } from "../model/schema.ts";
import { TaskOptions } from "../model/task.ts";

/** Without those that mean something only for one page. */
const DefaultOptions = Type.Omit(TaskOptions, ["format_id", "ranges", "entries"], { additionalProperties: false });

/** Returns the options that tasks have by default. @throws Error that names the variable, the rule and the value */
export function parseTaskOptions(text: string): TaskOptions {
  if (text === "") return {};
  const refuse = (rule: string): never => {
    throw new Error(`TASK_OPTIONS must be ${rule}, got ${JSON.stringify(text)}`);
  };
  let options: unknown;
  try {
    options = JSON.parse(text);
  } catch (cause) {
    return refuse(`JSON (${messageOf(cause)})`);
  }
  const [fault] = [...Value.Errors(DefaultOptions, options)].flatMap(innermost);
  if (fault !== undefined) return refuse(`an object of options that hold for every page: ${describe(fault)}`);
  const { subtitles } = options as TaskOptions;
  const languages = typeof subtitles === "object" ? subtitles.languages : [];
  // As a tag it is the language Allar, which requests are refused for too.
  if (Array.isArray(languages) && languages.some((tag) => tag.toLowerCase() === "all")) {
    return refuse(`an object whose subtitles/languages are "all" itself, or a list without it`);
  }
  return options as TaskOptions;
}

function describe(fault: ValueError) {
  const known = Object.keys(DefaultOptions.properties);
  const name = fault.path.slice(1);
  if (name === "") return `in braces, with ${known.join(", ")}`;
  if (name.includes("/") || known.includes(name)) return `${name} ${brokenRule(fault)}`;
  const likely = findLikelyName(name, known);
  return likely === undefined ? `${name} is none of ${known.join(", ")}` : `did you mean ${likely} by ${name}?`;
}
