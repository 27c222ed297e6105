import { parseArgs } from "node:util";
import { Value } from "@sinclair/typebox/value";
import { KeyLimits, keyNamePattern } from "../model/access-key.ts";
import { ruleOf, withIntegers } from "../model/schema.ts";
import { isWebhookUrl } from "../model/webhook-endpoint.ts";
import type { KeyCommand } from "./commands.ts";

export const usage = `usage: npm run -s key -- add NAME [--admin] [--rate N] [--max-running N] [--max-queued N] [--max-bytes N] [--webhook URL]
       npm run -s key -- list
       npm run -s key -- remove NAME [--last]
STORE_URL and DATA_DIR must have the values that the service uses.`;

const options = {
  admin: { type: "boolean" },
  last: { type: "boolean" },
  rate: { type: "string" },
  "max-running": { type: "string" },
  "max-queued": { type: "string" },
  "max-bytes": { type: "string" },
  webhook: { type: "string" },
} as const;

const optionsOf: Readonly<Record<KeyCommand["command"], readonly string[]>> = {
  add: ["admin", "webhook", ...Object.keys(KeyLimits.properties).map(toOption)],
  list: [],
  remove: ["last"],
};

/** Whether what follows the program's name asks how it is used. */
export function isHelpWanted(args: readonly string[]): boolean {
  return args[0] === "help" || args.includes("--help") || args.includes("-h");
}

/**
 * Reads what follows the program's name.
 *
 * @throws Error that names the argument, the rule and the value.
 */
export function parseKeyCommand(args: readonly string[]): KeyCommand {
  const { values, positionals } = parseOptions(args);
  const [command = "", name = "", ...others] = positionals;
  if (!isCommand(command)) throw new Error(`the command must be add, list or remove, got "${command}"`);
  const unknown = Object.keys(values).find((option) => !optionsOf[command].includes(option));
  if (unknown !== undefined) throw new Error(`${command} has no option --${unknown}`);
  const surplus = command === "list" ? name : others[0];
  if (surplus) throw new Error(`${command} takes no argument "${surplus}"`);
  if (command === "list") return { command };
  if (!new RegExp(keyNamePattern).test(name)) {
    const rule = "1 to 64 of a-z, 0-9, dot, dash and underscore, the first a letter or a digit";
    throw new Error(`NAME must be ${rule}, got ${JSON.stringify(name)}`);
  }
  if (command === "remove") return { command, name, last: values.last === true };
  const { admin = false, webhook } = values;
  const limits = parseLimits(values);
  if (webhook === undefined) return { command, name, admin, limits };
  if (!isWebhookUrl(webhook)) {
    throw new Error("--webhook must be an http or https URL without user name and password");
  }
  return { command, name, admin, limits, webhook };
}

function parseOptions(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (cause) {
    // Node adds how to write an argument that starts with a dash: none does here.
    const message = (cause as Error).message.replace(/\. To specify a positional .*/s, "");
    throw new Error(message, { cause });
  }
}

function isCommand(text: string): text is KeyCommand["command"] {
  return Object.hasOwn(optionsOf, text);
}

function toOption(limit: string): string {
  return limit.replaceAll("_", "-");
}

function parseLimits(values: Readonly<Record<string, unknown>>): KeyLimits {
  const given = Object.keys(KeyLimits.properties)
    .map((limit) => [limit, values[toOption(limit)]] as const)
    .filter(([, value]) => value !== undefined);
  const limits = withIntegers(KeyLimits, Object.fromEntries(given));
  const fault = Value.Errors(KeyLimits, limits).First();
  if (fault === undefined) return limits;
  const option = toOption(fault.path.slice(1));
  throw new Error(`--${option} must be ${ruleOf(fault.schema)}, got ${JSON.stringify(fault.value)}`);
}
