import { Value } from "@sinclair/typebox/value";
import { ruleOf, withIntegers } from "../model/schema.ts";
import { Config } from "./settings.ts";
import {
  isWebhookUrl,
  type WebhookEndpoint,
  webhookSecretPattern,
} from "../model/webhook-endpoint.ts";

/**
 * Reads the settings from `env`; an unset or empty variable has its default.
 *
 * @throws Error with one line that names the variable, the rule and the value.
 */
export function readConfig(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const given = Object.keys(Config.properties)
    .map((name) => [name, env[name]] as const)
    .filter(([, value]) => value !== undefined && value !== "");
  const config = Value.Default(Config, withIntegers(Config, Object.fromEntries(given)));
  const fault = Value.Errors(Config, config).First();
  if (fault !== undefined) {
    const { path, schema, value } = fault;
    const rule = ruleOf(schema) ?? `at least ${schema["minLength"]} characters long`;
    throw new Error(`${path.slice(1)} must be ${rule}, got ${JSON.stringify(value)}`);
  }
  assertShared(config as Config);
  assertWebhook(config as Config);
  assertYtDlp(config as Config);
  return config as Config;
}

/** Returns Node's own variables for CA certificates, as far as `env` has them, for worker processes. */
export function certificateVariables(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  const names = ["NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "SSL_CERT_FILE", "SSL_CERT_DIR"];
  return Object.fromEntries(
    names.map((name) => [name, env[name] ?? ""]).filter(([, value]) => value),
  );
}

/** Returns the folders in which programs are found, as PATH has them. */
export function searchPath(
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  return env["PATH"] ?? "";
}

/** Returns where the service's own webhook messages go; undefined: nowhere. */
export function webhookOf({ WEBHOOK_URL, WEBHOOK_SECRET }: Config): WebhookEndpoint | undefined {
  return WEBHOOK_URL === "" ? undefined : { url: WEBHOOK_URL, secret: WEBHOOK_SECRET };
}

/** The messages leave out the values: both may be secret. */
function assertWebhook({ WEBHOOK_URL: url, WEBHOOK_SECRET: secret }: Config): void {
  if ((url === "") !== (secret === "")) {
    const [given, missing] =
      url === "" ? ["WEBHOOK_SECRET", "WEBHOOK_URL"] : ["WEBHOOK_URL", "WEBHOOK_SECRET"];
    throw new Error(`${missing} must be set if ${given} is`);
  }
  if (url === "") return;
  if (!isWebhookUrl(url)) {
    throw new Error(
      "WEBHOOK_URL must be an http or https URL of at most 8192 characters, without user name and password",
    );
  }
  if (!new RegExp(webhookSecretPattern).test(secret)) {
    throw new Error("WEBHOOK_SECRET must be whsec_ and the base64 of 24 to 64 bytes");
  }
}

function assertYtDlp({ RESOLVER, YTDLP }: Config): void {
  if (RESOLVER !== "yt-dlp" || YTDLP !== "off") return;
  throw new Error(`RESOLVER must be another one if YTDLP is off, got "${RESOLVER}"`);
}

/** Without a shared store, an `api` has no worker to run its tasks, and a `worker` gets no tasks. */
function assertShared(config: Config): void {
  if (config.ROLE === "all" || isSharedStore(config)) return;
  throw new Error(`ROLE must be all unless STORE_URL begins with postgres:, got "${config.ROLE}"`);
}

/** Whether several processes can open the store at a time. */
export function isSharedStore({ STORE_URL }: Pick<Config, "STORE_URL">): boolean {
  return /^postgres(ql)?:/.test(STORE_URL);
}
