import { join } from "node:path";
import { type Static, type TObject, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parseTemplate, type Template } from "../runner/library/template.ts";
import { findLikely, ruleOf, withIntegers } from "../model/schema.ts";
import { isWebhookUrl, type WebhookEndpoint, webhookSecretPattern } from "../model/webhook-endpoint.ts";
import { parseHosts, parseNetworkList, parseOrigins } from "./lists.ts";
import { namesOfMeTube, Settings } from "./settings.ts";
import { parseTaskOptions } from "./task-options.ts";
import { messageOf } from "../model/errors.ts";

export type Config = ReturnType<typeof readConfig>;

/**
 * Reads the settings from `env`; an unset variable has its default, and so has an empty one unless empty means something.
 * Returns what each part of the service takes of them, ready to use, by its own names and in its own units.
 *
 * @throws Error with one line that names the variable, the rule and the value.
 */
export function readConfig(env: Environment = process.env) {
  const settings = readSettings(Settings, env);
  assertShared(settings);
  assertYtDlp(settings);
  assertSponsorBlock(settings);
  const { cidrs: allowNetworks } = parseNetworkList("ALLOW_NETWORKS", settings.ALLOW_NETWORKS);
  const webhook = parseWebhook(settings);
  const libraryTemplate = parseLibraryTemplate(settings);
  return {
    role: settings.ROLE,
    log: { level: settings.LOG_LEVEL, format: settings.LOG_FORMAT },
    drainMs: settings.DRAIN_MS,
    listen: { host: settings.HOST, port: settings.PORT },
    /** Where the metrics are also served, without a key; undefined: nowhere. */
    listenMetrics:
      settings.METRICS_PORT === 0 ? undefined : { host: settings.METRICS_HOST, port: settings.METRICS_PORT },
    files: { folder: settings.DATA_DIR },
    store: {
      url: settings.STORE_URL,
      dataDir: settings.DATA_DIR,
      maxQueued: settings.MAX_QUEUED,
      heartbeatS: settings.HEARTBEAT_S,
      webhook: webhook !== undefined,
    },
    keys: { host: settings.HOST, folder: settings.DATA_DIR, isShared: isSharedStore(settings) },
    client: clientOf(settings, allowNetworks),
    resolver: resolverOf(settings, allowNetworks),
    engine: engineOf(settings, allowNetworks),
    runner: runnerOf(settings),
    sponsorBlockUrl: settings.SPONSORBLOCK_URL,
    libraryTemplate,
    library: settings.LIBRARY_DIR === "" ? undefined : libraryOf(settings, libraryTemplate),
    webhook,
    server: serverOf(settings),
    app: {
      web: settings.WEB === "on",
      infoTimeoutMs: settings.INFO_TIMEOUT_MS,
      infoCacheTtlS: settings.INFO_CACHE_TTL_S,
      infoConcurrency: settings.INFO_CONCURRENCY,
      template: libraryTemplate,
      defaultOptions: parseTaskOptions(settings.TASK_OPTIONS),
    },
  };
}

const StoreConfig = Type.Pick(Settings, ["STORE_URL", "DATA_DIR"]);
export type StoreConfig = Static<typeof StoreConfig>;

/** Reads the settings that say where the store is, and no others, as `readConfig` does. */
export function readStoreConfig(env: Environment = process.env): StoreConfig {
  return readSettings(StoreConfig, env);
}

const previewSettings = [
  "LIBRARY_TEMPLATE",
  "RESOLVER",
  "YTDLP",
  "YTDLP_COOKIES",
  "ALLOW_NETWORKS",
  "PAGE_MAX_BYTES",
  "INFO_TIMEOUT_MS",
] as const satisfies (keyof Settings)[];

/** Reads the settings that the name of a page's file in the library depends on; all others have their defaults. */
export function readPreviewConfig(env: Environment = process.env): Config {
  return readConfig(Object.fromEntries(previewSettings.map((name) => [name, env[name]])));
}

/**
 * Returns the variables of `env` that have no meaning and are nearly the name of a setting, or MeTube's for it, each with that name. Names of
 * a single word, as `HOSTNAME`, belong to others.
 */
export function findMisspeltSettings(env: Environment = process.env): { name: string; likely: string }[] {
  const settings = Object.keys(Settings.properties);
  return Object.keys(env)
    .filter((name) => /^[A-Z]+_[A-Z_]+$/.test(name) && !settings.includes(name))
    .flatMap((name) => {
      const likely = namesOfMeTube[name] ?? findLikely(name, settings);
      return likely?.includes("_") ? [{ name, likely }] : [];
    });
}

type Environment = Readonly<Record<string, string | undefined>>;

function readSettings<T extends TObject>(schema: T, env: Environment): Static<T> {
  const given = Object.keys(schema.properties)
    .map((name) => [name, env[name]] as const)
    .filter(([name, value]) => value !== undefined && (value !== "" || schema.properties[name]?.["isEmptyAllowed"]));
  const config = Value.Default(schema, withIntegers(schema, Object.fromEntries(given)));
  const fault = Value.Errors(schema, config).First();
  if (fault !== undefined) {
    const { path, schema: broken, value } = fault;
    const written = `written as in ${JSON.stringify(broken["default"])}`;
    const rule = ruleOf(broken) ?? (broken["pattern"] ? written : `at least ${broken["minLength"]} characters long`);
    throw new Error(`${path.slice(1)} must be ${rule}, got ${JSON.stringify(value)}`);
  }
  return config as Static<T>;
}

/** Returns where the service's own webhook messages go; undefined: nowhere. The errors leave out the values: both may be secret. */
function parseWebhook({ WEBHOOK_URL: url, WEBHOOK_SECRET: secret }: Settings): WebhookEndpoint | undefined {
  if ((url === "") !== (secret === "")) {
    const [given, missing] = url === "" ? ["WEBHOOK_SECRET", "WEBHOOK_URL"] : ["WEBHOOK_URL", "WEBHOOK_SECRET"];
    throw new Error(`${missing} must be set if ${given} is`);
  }
  if (url === "") return undefined;
  const rule = "must be an http or https URL of at most 8192 characters, without user name and password";
  if (!isWebhookUrl(url)) throw new Error(`WEBHOOK_URL ${rule}`);
  if (!new RegExp(webhookSecretPattern).test(secret)) {
    throw new Error("WEBHOOK_SECRET must be whsec_ and the base64 of 24 to 64 bytes");
  }
  return { url, secret };
}

function assertYtDlp({ RESOLVER, YTDLP }: Settings): void {
  if (RESOLVER !== "yt-dlp" || YTDLP !== "off") return;
  throw new Error(`RESOLVER must be auto or page if YTDLP is off, got "${RESOLVER}"`);
}

function assertSponsorBlock({ SPONSORBLOCK_URL: url }: Settings): void {
  if (url === "" || isWebhookUrl(url)) return;
  const rule = "must be an http or https URL without user name and password";
  throw new Error(`SPONSORBLOCK_URL ${rule}, got ${JSON.stringify(url)}`);
}

function parseLibraryTemplate({ LIBRARY_TEMPLATE: template }: Settings): Template {
  try {
    return parseTemplate(template);
  } catch (cause) {
    const rule = messageOf(cause);
    throw new Error(`LIBRARY_TEMPLATE must ${rule}, got ${JSON.stringify(template)}`, { cause });
  }
}

/** Without a shared store, an `api` has no worker to run its tasks, and a `worker` gets no tasks. */
function assertShared(settings: Settings): void {
  if (settings.ROLE === "all" || isSharedStore(settings)) return;
  throw new Error(`ROLE must be all unless STORE_URL begins with postgres:, got "${settings.ROLE}"`);
}

function clientOf(settings: Settings, allowNetworks: readonly string[]) {
  return {
    allowNetworks,
    perHost: settings.FETCHES_PER_HOST,
    idleTimeoutMs: settings.INFO_TIMEOUT_MS,
    totalTimeoutMs: settings.INFO_TIMEOUT_MS,
  };
}

function resolverOf(settings: Settings, allowNetworks: readonly string[]) {
  return {
    name: settings.RESOLVER,
    allowNetworks,
    pageMaxBytes: settings.PAGE_MAX_BYTES,
    hostDelayMs: settings.HOST_DELAY_MS,
    ytDlp: {
      path: settings.YTDLP,
      searchPath: process.env["PATH"] ?? "",
      cookiesFile: settings.YTDLP_COOKIES,
      concurrency: settings.YTDLP_CONCURRENCY,
      timeoutMs: settings.INFO_TIMEOUT_MS,
    },
  };
}

function engineOf(settings: Settings, allowNetworks: readonly string[]) {
  return {
    name: settings.ENGINE,
    allowNetworks,
    concurrentFragments: settings.CONCURRENT_FRAGMENTS,
    idleTimeoutMs: settings.IDLE_TIMEOUT_MS,
    minSpeedBps: settings.MIN_SPEED_BPS,
    minFreeBytes: settings.MIN_FREE_BYTES,
    maxSpeedBps: settings.MAX_SPEED_BPS,
    maxSpeedPerHostBps: settings.MAX_SPEED_PER_HOST_BPS,
    environment: certificateVariables(),
  };
}

function runnerOf(settings: Settings) {
  return {
    concurrency: settings.CONCURRENCY,
    perHost: settings.CONCURRENCY_PER_HOST,
    maxAttempts: settings.MAX_ATTEMPTS,
    backoffMs: settings.RETRY_BACKOFF_MS,
    runTimeoutMs: settings.RUN_TIMEOUT_S * 1_000,
    maxFileBytes: settings.MAX_FILE_BYTES,
    minFreeBytes: settings.MIN_FREE_BYTES,
    maxLiveS: settings.MAX_LIVE_S,
    maxEntries: settings.MAX_ENTRIES,
    retentionS: settings.RETENTION_S,
    maxStoredBytes: settings.MAX_STORED_BYTES,
  };
}

function serverOf(settings: Settings) {
  const { TRUSTED_PROXIES: proxies } = settings;
  return {
    allowedHosts: parseHosts(settings.ALLOWED_HOSTS),
    allowedOrigins: parseOrigins(settings.ALLOWED_ORIGINS),
    trustedProxies: parseNetworkList("TRUSTED_PROXIES", proxies === "off" ? "" : proxies),
    sendTimeoutMs: settings.SEND_TIMEOUT_S * 1_000,
    maxConnectionsPerAddress: settings.CONNECTIONS_PER_IP,
  };
}

function libraryOf(settings: Settings, template: Template) {
  return {
    folder: settings.LIBRARY_DIR,
    jobsFolder: join(settings.DATA_DIR, "library"),
    template,
    isLink: settings.LIBRARY_LINK === "hard",
    mode: Number.parseInt(settings.LIBRARY_MODE, 8),
    hasNfo: settings.LIBRARY_NFO === "on",
    minFreeBytes: settings.MIN_FREE_BYTES,
  };
}

/** Returns Node's own variables for CA certificates, as far as they are set, for worker processes. */
function certificateVariables(): Record<string, string> {
  const names = ["NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "SSL_CERT_FILE", "SSL_CERT_DIR"];
  return Object.fromEntries(names.map((name) => [name, process.env[name] ?? ""]).filter(([, value]) => value));
}

/** Whether several processes can open the store at a time. */
export function isSharedStore({ STORE_URL }: Pick<Settings, "STORE_URL">): boolean {
  return /^postgres(ql)?:/.test(STORE_URL);
}
