import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findMisspeltSettings, readConfig } from "../src/config/config.ts";
import { Settings } from "../src/config/settings.ts";
import { newWebhookSecret } from "../src/keys/secrets.ts";

const webhookSecret = newWebhookSecret();

describe("the settings", () => {
  it("have a default each", () => {
    const listen = { host: "127.0.0.1", port: 3000 };
    expect(readConfig({})).toMatchObject({ listen, listenMetrics: undefined, store: { url: "sqlite:" } });
  });

  it("parses integers, and treats an empty variable as unset", () => {
    const config = readConfig({ PORT: "8080", HOST: "", INFO_CACHE_TTL_S: "0" });
    expect(config).toMatchObject({ listen: { host: "127.0.0.1", port: 8080 }, app: { infoCacheTtlS: 0 } });
  });

  it.each([
    [{ PORT: "http" }, 'PORT must be an integer from 0 to 65535, got "http"'],
    [{ PORT: "70000" }, "PORT must be an integer from 0 to 65535, got 70000"],
    [{ PORT: "30.5" }, 'PORT must be an integer from 0 to 65535, got "30.5"'],
    [{ HEARTBEAT_S: "9" }, "HEARTBEAT_S must be an integer from 10 to 3600, got 9"],
    [{ ROLE: "boss" }, 'ROLE must be one of all, api, worker, got "boss"'],
    [{ ROLE: "api" }, 'ROLE must be all unless STORE_URL begins with postgres:, got "api"'],
    [{ ROLE: "worker", STORE_URL: "memory:" }, 'ROLE must be all unless STORE_URL begins with postgres:, got "worker"'],
    [{ WEBHOOK_URL: "https://a.test/?key=1" }, "WEBHOOK_SECRET must be set if WEBHOOK_URL is"],
    [{ WEBHOOK_SECRET: "hidden" }, "WEBHOOK_URL must be set if WEBHOOK_SECRET is"],
    [
      { WEBHOOK_URL: "ftp://hidden@a.test/", WEBHOOK_SECRET: webhookSecret },
      "WEBHOOK_URL must be an http or https URL of at most 8192 characters, without user name and password",
    ],
    [
      { WEBHOOK_URL: "http://a.test/", WEBHOOK_SECRET: "whsec_c2hvcnQ=" },
      "WEBHOOK_SECRET must be whsec_ and the base64 of 24 to 64 bytes",
    ],
    [
      { WEBHOOK_URL: "http://a.test/", WEBHOOK_SECRET: `${webhookSecret}!` },
      "WEBHOOK_SECRET must be whsec_ and the base64 of 24 to 64 bytes",
    ],
    [{ RESOLVER: "yt-dlp", YTDLP: "off" }, 'RESOLVER must be auto or page if YTDLP is off, got "yt-dlp"'],
    [{ LIBRARY_TEMPLATE: "{title" }, 'LIBRARY_TEMPLATE must close each { with a }, got "{title"'],
    [
      { LIBRARY_TEMPLATE: "%(uploader)s/{title}" },
      'LIBRARY_TEMPLATE must have its fields in braces: {title} instead of yt-dlp\'s %(title)s, got "%(uploader)s/{title}"',
    ],
    [{ LIBRARY_MODE: "7777" }, 'LIBRARY_MODE must be written as in "0644", got "7777"'],
    [{ LIBRARY_LINK: "soft" }, 'LIBRARY_LINK must be one of copy, hard, got "soft"'],
    [{ INFO_TIMEOUT_MS: "0" }, "INFO_TIMEOUT_MS must be an integer from 1 to 600000, got 0"],
    [
      { TASK_OPTIONS: "max_height" },
      `TASK_OPTIONS must be JSON (Unexpected token 'm', "max_height" is not valid JSON), got "max_height"`,
    ],
    [
      { TASK_OPTIONS: "[]" },
      "TASK_OPTIONS must be an object of options that hold for every page: in braces, with max_height, preferred_codecs, " +
        'audio_only, audio_languages, subtitles, skip, skip_mode, if_exists, embed, got "[]"',
    ],
    [
      { TASK_OPTIONS: '{"max_heigth": 1}' },
      'TASK_OPTIONS must be an object of options that hold for every page: did you mean max_height by max_heigth?, got "{\\"max_heigth\\": 1}"',
    ],
    [
      { TASK_OPTIONS: '{"writesubtitles": true}' },
      'TASK_OPTIONS must be an object of options that hold for every page: did you mean subtitles by writesubtitles?, got "{\\"writesubtitles\\": true}"',
    ],
    [
      { TASK_OPTIONS: '{"max_height": "720"}' },
      'TASK_OPTIONS must be an object of options that hold for every page: max_height must be an integer from 1 to 65535, got "{\\"max_height\\": \\"720\\"}"',
    ],
    [
      { TASK_OPTIONS: '{"audio_only": 1}' },
      'TASK_OPTIONS must be an object of options that hold for every page: audio_only must be a boolean, got "{\\"audio_only\\": 1}"',
    ],
    [
      { TASK_OPTIONS: '{"subtitles": "en"}' },
      'TASK_OPTIONS must be an object of options that hold for every page: subtitles must be a boolean or an object, got "{\\"subtitles\\": \\"en\\"}"',
    ],
    [
      { TASK_OPTIONS: '{"audio_languages": ["e n"]}' },
      'TASK_OPTIONS must be an object of options that hold for every page: audio_languages/0 must be written as in "en" or "pt-BR", got "{\\"audio_languages\\": [\\"e n\\"]}"',
    ],
    [
      { TASK_OPTIONS: '{"subtitles":{"languages":["en","all"]}}' },
      'TASK_OPTIONS must be an object whose subtitles/languages are "all" itself, or a list without it, got "{\\"subtitles\\":{\\"languages\\":[\\"en\\",\\"all\\"]}}"',
    ],
    [{ LOG_LEVEL: "loud" }, 'LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent, got "loud"'],
  ])("refuses %o with one line that names the variable, the rule and the value", (env, message) => {
    expect(() => readConfig(env)).toThrow(new Error(message));
  });

  it("reads the options of all tasks", () => {
    const defaultOptions = {
      max_height: 1080,
      subtitles: { languages: ["en"] },
      skip: ["sponsor"],
      if_exists: "reuse",
    };
    expect(readConfig({ TASK_OPTIONS: JSON.stringify(defaultOptions) }).app).toMatchObject({ defaultOptions });
    expect(readConfig({ TASK_OPTIONS: "" }).app.defaultOptions).toEqual({});
  });

  it.each(["*", "*.example.com", "example.com:8080", "https://example.com", "a b", "a/b", "a@b"])(
    "refuses %j in ALLOWED_HOSTS",
    (host) => {
      const rule = `ALLOWED_HOSTS must be host names without port, got ${JSON.stringify(host)}`;
      expect(() => readConfig({ ALLOWED_HOSTS: `good.example.com,${host}` })).toThrow(rule);
    },
  );

  it.each([
    "*",
    "https://*.example.com",
    "https://a.example.com/path",
    "a.example.com",
    "null",
    "ftp://a",
    "chrome-extension://*",
  ])("refuses %j in ALLOWED_ORIGINS", (text) => {
    const rule = "must be origins such as https://app.example.com or chrome-extension://<id>, comma-separated";
    expect(() => readConfig({ ALLOWED_ORIGINS: `https://a.test,${text}` })).toThrow(
      `ALLOWED_ORIGINS ${rule}, got ${JSON.stringify(text)}`,
    );
  });

  it.each(["10.0.0.1", "10.0.0.0/33", "proxy/8", "off"])("refuses %j in lists of networks", (network) => {
    for (const name of ["ALLOW_NETWORKS", "TRUSTED_PROXIES"]) {
      expect(() => readConfig({ [name]: ` 10.0.0.0/8,, ${network}` })).toThrow(
        `${name} must be networks like 127.0.0.0/8 or fd00::/8, got ${JSON.stringify(network)}`,
      );
    }
  });

  it("takes `off` for no proxies, and empty lists for their defaults", () => {
    expect(readConfig({ TRUSTED_PROXIES: "off" }).server.trustedProxies.cidrs).toEqual([]);
    const { server, client } = readConfig({ TRUSTED_PROXIES: "", ALLOWED_HOSTS: "", ALLOW_NETWORKS: "" });
    expect(server.trustedProxies.cidrs).toEqual(["127.0.0.0/8", "::1/128"]);
    expect([server.allowedHosts.size, client.allowNetworks]).toEqual([0, []]);
  });

  it.each(["postgres", "postgresql"])("lets a %s: store be shared between roles", (scheme) => {
    const STORE_URL = `${scheme}://user:secret@db.test/unreel`;
    for (const ROLE of ["all", "api", "worker"]) {
      expect(readConfig({ ROLE, STORE_URL })).toMatchObject({ role: ROLE, store: { url: STORE_URL } });
    }
  });

  it("names variables that are nearly settings, and no others", () => {
    const misspelt = { MAX_QUEUE: "9", RUN_TIMEOUT: "60", YTDLP_COOKIE: "", DIR_DATA: "/srv", ALLOWED_HOST: "a.test" };
    expect(findMisspeltSettings(misspelt)).toEqual([
      { name: "MAX_QUEUE", likely: "MAX_QUEUED" },
      { name: "RUN_TIMEOUT", likely: "RUN_TIMEOUT_S" },
      { name: "YTDLP_COOKIE", likely: "YTDLP_COOKIES" },
      { name: "DIR_DATA", likely: "DATA_DIR" },
      { name: "ALLOWED_HOST", likely: "ALLOWED_HOSTS" },
    ]);
    expect(findMisspeltSettings({ YTDL_OPTIONS: "{}", CLEAR_COMPLETED_AFTER: "60" })).toEqual([
      { name: "YTDL_OPTIONS", likely: "TASK_OPTIONS" },
      { name: "CLEAR_COMPLETED_AFTER", likely: "RETENTION_S" },
    ]);
    const others = [
      "HOSTNAME",
      "NODE_ENV",
      "XDG_DATA_DIRS",
      "LD_LIBRARY_PATH",
      "HTTP_PROXY",
      "UNREEL_PORT",
      "SSL_CERT_DIR",
    ];
    const env = Object.fromEntries([...others, ...Object.keys(Settings.properties)].map((name) => [name, "x"]));
    expect(findMisspeltSettings(env)).toEqual([]);
  });

  it("is documented in docs/settings.md, each setting with its default", () => {
    const text = readFileSync(new URL("../docs/settings.md", import.meta.url), "utf8");
    const rows = text.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
    for (const [name, schema] of Object.entries(Settings.properties)) {
      const shown = schema.default === "" ? "" : `\`${schema.default}\``;
      expect(rows).toContainEqual(["", `\`${name}\``, shown, schema.description, ""]);
    }
  });
});
