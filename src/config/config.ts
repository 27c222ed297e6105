import { join } from "node:path";
import { type Static, type TObject, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parseTemplate } from "../runner/library/template.ts";
import { findLikely, ruleOf, withIntegers } from "../model/schema.ts";
import { isWebhookUrl, type WebhookEndpoint, webhookSecretPattern } from "../model/webhook-endpoint.ts";
import { Config } from "./settings.ts";

/**
 * Reads the settings from `env`; an unset variable has its default, and so has an empty one unless empty means something.
 *
 * @throws Error with one line that names the variable, the rule and the value.
 */
export function readConfig(env: Environment = process.env): Config {
  const config = readSettings(Config, env);
  assertShared(config);
  assertWebhook(config);
  assertYtDlp(config);
  assertSponsorBlock(config);
  assertTemplate(config);
  return config;
}

const StoreConfig = Type.Pick(Config, ["STORE_URL", "DATA_DIR"]);
export type StoreConfig = Static<typeof StoreConfig>;

/** Reads the settings that say where the store is, and no others, as `readConfig` does. */
export function readStoreConfig(env: Environment = process.env): StoreConfig {
  return readSettings(StoreConfig, env);
}

/**
 * Returns the variables of `env` that have no meaning and are nearly the name of a setting, each with that name. Names of
 * a single word, as `HOSTNAME`, belong to others.
 */
export function findMisspeltSettings(env: Environment = process.env): { name: string; likely: string }[] {
  const settings = Object.keys(Config.properties);
  return Object.keys(env)
    .filter((name) => /^[A-Z]+_[A-Z_]+$/.test(name) && !settings.includes(name))
    .flatMap((name) => {
      const likely = findLikely(name, settings);
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

/** The messages leave out the values: both may be secret. */
function assertWebhook({ WEBHOOK_URL: url, WEBHOOK_SECRET: secret }: Config): void {
  if ((url === "") !== (secret === "")) {
    const [given, missing] = url === "" ? ["WEBHOOK_SECRET", "WEBHOOK_URL"] : ["WEBHOOK_URL", "WEBHOOK_SECRET"];
    throw new Error(`${missing} must be set if ${given} is`);
  }
  if (url === "") return;
  const rule = "must be an http or https URL of at most 8192 characters, without user name and password";
  if (!isWebhookUrl(url)) throw new Error(`WEBHOOK_URL ${rule}`);
  if (!new RegExp(webhookSecretPattern).test(secret)) {
    throw new Error("WEBHOOK_SECRET must be whsec_ and the base64 of 24 to 64 bytes");
  }
}

function assertYtDlp({ RESOLVER, YTDLP }: Config): void {
  if (RESOLVER !== "yt-dlp" || YTDLP !== "off") return;
  throw new Error(`RESOLVER must be another one if YTDLP is off, got "${RESOLVER}"`);
}

function assertSponsorBlock({ SPONSORBLOCK_URL: url }: Config): void {
  if (url === "" || isWebhookUrl(url)) return;
  throw new Error(
    `SPONSORBLOCK_URL must be an http or https URL without user name and password, got ${JSON.stringify(url)}`,
  );
}

function assertTemplate({ LIBRARY_TEMPLATE: template }: Config): void {
  try {
    parseTemplate(template);
  } catch (cause) {
    const rule = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`LIBRARY_TEMPLATE must ${rule}, got ${JSON.stringify(template)}`, { cause });
  }
}

/** Without a shared store, an `api` has no worker to run its tasks, and a `worker` gets no tasks. */
function assertShared(config: Config): void {
  if (config.ROLE === "all" || isSharedStore(config)) return;
  throw new Error(`ROLE must be all unless STORE_URL begins with postgres:, got "${config.ROLE}"`);
}

/** What each part of the service takes of the settings, by its own names and in its own units. */
export function settingsByPart(config: Config) {
  const { ALLOW_NETWORKS: allowNetworks, INFO_TIMEOUT_MS: infoTimeoutMs } = config;
  const webhook = webhookOf(config);
  return {
    role: config.ROLE,
    files: { folder: config.DATA_DIR },
    store: {
      url: config.STORE_URL,
      dataDir: config.DATA_DIR,
      maxQueued: config.MAX_QUEUED,
      heartbeatS: config.HEARTBEAT_S,
      webhook: webhook !== undefined,
    },
    keys: { host: config.HOST, folder: config.DATA_DIR, isShared: isSharedStore(config) },
    client: {
      allowNetworks,
      perHost: config.FETCHES_PER_HOST,
      idleTimeoutMs: infoTimeoutMs,
      totalTimeoutMs: infoTimeoutMs,
    },
    resolver: {
      name: config.RESOLVER,
      allowNetworks,
      pageMaxBytes: config.PAGE_MAX_BYTES,
      hostDelayMs: config.HOST_DELAY_MS,
      ytDlp: {
        path: config.YTDLP,
        searchPath: process.env["PATH"] ?? "",
        cookiesFile: config.YTDLP_COOKIES,
        concurrency: config.YTDLP_CONCURRENCY,
        timeoutMs: infoTimeoutMs,
      },
    },
    engine: {
      name: config.ENGINE,
      allowNetworks,
      concurrentFragments: config.CONCURRENT_FRAGMENTS,
      idleTimeoutMs: config.IDLE_TIMEOUT_MS,
      minSpeedBps: config.MIN_SPEED_BPS,
      minFreeBytes: config.MIN_FREE_BYTES,
      maxSpeedBps: config.MAX_SPEED_BPS,
      maxSpeedPerHostBps: config.MAX_SPEED_PER_HOST_BPS,
      environment: certificateVariables(),
    },
    runner: {
      concurrency: config.CONCURRENCY,
      perHost: config.CONCURRENCY_PER_HOST,
      maxAttempts: config.MAX_ATTEMPTS,
      backoffMs: config.RETRY_BACKOFF_MS,
      runTimeoutMs: config.RUN_TIMEOUT_S * 1_000,
      maxFileBytes: config.MAX_FILE_BYTES,
      minFreeBytes: config.MIN_FREE_BYTES,
      maxLiveS: config.MAX_LIVE_S,
      maxEntries: config.MAX_ENTRIES,
      retentionS: config.RETENTION_S,
      maxStoredBytes: config.MAX_STORED_BYTES,
    },
    sponsorBlockUrl: config.SPONSORBLOCK_URL,
    libraryTemplate: parseTemplate(config.LIBRARY_TEMPLATE),
    /** undefined: there is none. */
    library: config.LIBRARY_DIR === "" ? undefined : libraryOf(config),
    webhook,
    /** Of each app. */
    server: {
      allowedHosts: config.ALLOWED_HOSTS,
      allowedOrigins: config.ALLOWED_ORIGINS,
      trustedProxies: config.TRUSTED_PROXIES === "off" ? [] : config.TRUSTED_PROXIES,
      sendTimeoutMs: config.SEND_TIMEOUT_S * 1_000,
      maxConnectionsPerAddress: config.CONNECTIONS_PER_IP,
    },
    app: {
      web: config.WEB === "on",
      allowNetworks,
      infoTimeoutMs,
      infoCacheTtlS: config.INFO_CACHE_TTL_S,
      infoConcurrency: config.INFO_CONCURRENCY,
    },
    hasMetricsPort: config.METRICS_PORT !== 0,
  };
}

export type SettingsByPart = ReturnType<typeof settingsByPart>;

function libraryOf(config: Config) {
  return {
    folder: config.LIBRARY_DIR,
    jobsFolder: join(config.DATA_DIR, "library"),
    template: parseTemplate(config.LIBRARY_TEMPLATE),
    isLink: config.LIBRARY_LINK === "hard",
    mode: Number.parseInt(config.LIBRARY_MODE, 8),
    hasNfo: config.LIBRARY_NFO === "on",
    minFreeBytes: config.MIN_FREE_BYTES,
  };
}

/** Returns where the service's own webhook messages go; undefined: nowhere. */
function webhookOf({ WEBHOOK_URL, WEBHOOK_SECRET }: Config): WebhookEndpoint | undefined {
  return WEBHOOK_URL === "" ? undefined : { url: WEBHOOK_URL, secret: WEBHOOK_SECRET };
}

/** Returns Node's own variables for CA certificates, as far as they are set, for worker processes. */
function certificateVariables(): Record<string, string> {
  const names = ["NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "SSL_CERT_FILE", "SSL_CERT_DIR"];
  return Object.fromEntries(names.map((name) => [name, process.env[name] ?? ""]).filter(([, value]) => value));
}

/** Whether several processes can open the store at a time. */
export function isSharedStore({ STORE_URL }: Pick<Config, "STORE_URL">): boolean {
  return /^postgres(ql)?:/.test(STORE_URL);
}
