import { type Static, Type } from "@sinclair/typebox";
import { AccessKey, KeyLimits, keyNamePattern } from "../model/access-key.ts";
import { accessKeyOf, newSecret, newWebhookSecret } from "./secrets.ts";
import { ServiceError } from "../model/errors.ts";
import type { KeyStore } from "../stores/key-store.ts";
import { isWebhookUrl, WebhookEndpoint } from "../model/webhook-endpoint.ts";
import { parseArgs } from "node:util";
import { Value } from "@sinclair/typebox/value";
import { ruleOf, withIntegers } from "../model/schema.ts";

const KeyName = Type.String({ pattern: keyNamePattern });

/** What can be done with keys. */
export const KeyCommand = Type.Union([
  Type.Object({
    command: Type.Literal("add"),
    name: KeyName,
    admin: Type.Boolean(),
    limits: KeyLimits,
    webhook: Type.Optional(WebhookEndpoint.properties.url),
  }),
  Type.Object({ command: Type.Literal("list") }),
  Type.Object({
    command: Type.Literal("remove"),
    name: KeyName,
    last: Type.Boolean({ description: "also if it is the last key" }),
  }),
]);
export type KeyCommand = Static<typeof KeyCommand>;

const ShownKey = Type.Composite([
  Type.Pick(AccessKey, ["name", "admin", "limits", "created_at"]),
  Type.Object({ webhook: Type.Optional(Type.String({ description: "origin of its URL" })) }),
]);
type ShownKey = Static<typeof ShownKey>;

/** What a command returns: `secret` if a key was added, `webhook_secret` if with a webhook, `keys` if they were listed. */
export const KeyResult = Type.Object({
  secret: Type.Optional(Type.String()),
  webhook_secret: Type.Optional(Type.String()),
  keys: Type.Optional(Type.Array(ShownKey)),
});
export type KeyResult = Static<typeof KeyResult>;

/** @throws ServiceError `conflict` if the name is taken or the last key would go; `not_found`; the store's errors. */
export async function runKeyCommand(keys: KeyStore, command: KeyCommand): Promise<KeyResult> {
  if (command.command === "list") return { keys: (await keys.list()).map(toShown) };
  if (command.command === "add") {
    const secret = newSecret();
    const { webhook: url, ...given } = command;
    const webhook = url === undefined ? undefined : { url, secret: newWebhookSecret() };
    await keys.add(accessKeyOf(secret, { ...given, ...(webhook && { webhook }) }, new Date()));
    return { secret, ...(webhook && { webhook_secret: webhook.secret }) };
  }
  if (!command.last) await assertNotLast(keys, command.name);
  await keys.remove(command.name);
  return {};
}

/** Without keys, the service is open to all. */
async function assertNotLast(keys: KeyStore, removed: string): Promise<void> {
  const [first, second] = await keys.list();
  if (first?.name !== removed || second !== undefined) return;
  const rule = "without keys everybody who reaches the service may use it; --last removes it";
  throw new ServiceError("conflict", `${removed} is the last key: ${rule}`);
}

function toShown({ name: shown, admin, limits, created_at, webhook }: AccessKey): ShownKey {
  const origin = webhook && URL.parse(webhook.url)?.origin;
  return { name: shown, admin, limits, created_at, ...(origin && { webhook: origin }) };
}

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
