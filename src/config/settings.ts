import { type Static, Type } from "@sinclair/typebox";
import { defaultTemplate } from "../runner/library/template.ts";
import { oneOf } from "../model/schema.ts";

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

const text = (byDefault: string, description: string) => Type.String({ default: byDefault, description });

const integer = (byDefault: number, [minimum, maximum]: readonly [number, number], description: string) =>
  Type.Integer({ default: byDefault, minimum, maximum, description });

const choice = <const T extends readonly string[]>(byDefault: T[number], values: T, description: string) => ({
  ...oneOf(values, description),
  default: byDefault,
});

/** What settings of MeTube are called here. */
export const namesOfMeTube: Readonly<Record<string, string>> = {
  DOWNLOAD_DIR: "LIBRARY_DIR",
  OUTPUT_TEMPLATE: "LIBRARY_TEMPLATE",
  YTDL_OPTIONS: "TASK_OPTIONS",
  MAX_CONCURRENT_DOWNLOADS: "CONCURRENCY and CONCURRENCY_PER_HOST",
  CLEAR_COMPLETED_AFTER: "RETENTION_S",
  CORS_ALLOWED_ORIGINS: "ALLOWED_ORIGINS",
};

/** Every environment variable that the service reads: type, default, bounds, meaning, unit. */
export const Settings = Type.Object({
  HOST: text("127.0.0.1", "address to listen on; 0.0.0.0 or :: opens the service to the network"),
  PORT: integer(3000, [0, 65535], "port to listen on; 0 picks a free one"),
  ALLOWED_HOSTS: text(
    "",
    "public host names of the service, comma-separated; requests for others get 421, except for IP addresses and local names: one label, `*.local` and the like",
  ),
  ALLOWED_ORIGINS: text(
    "",
    "origins of web pages and browser extensions that may call the service (CORS), comma-separated: `https://app.example.com`, `chrome-extension://<id>`, `moz-extension://*`; they send a key in `Authorization`, a session's cookie does not count",
  ),
  TRUSTED_PROXIES: text(
    "127.0.0.0/8,::1/128",
    "networks of reverse proxies whose `X-Forwarded-For`, `-Proto`, `-Host` and `Forwarded` count: comma-separated CIDR blocks; `off`: none",
  ),
  WEB: choice("on", ["on", "off"], "whether there is a web UI at `/`"),
  CONNECTIONS_PER_IP: integer(
    256,
    [1, 1_000_000],
    "connections of one client address (IPv6: /64 network), except loopback and TRUSTED_PROXIES; a further one closes the one that has been idle longest",
  ),
  SEND_TIMEOUT_S: integer(
    60,
    [1, 86_400],
    "how long a response may wait for its client to read before it is cut off, seconds",
  ),
  LOG_LEVEL: choice(
    "info",
    ["fatal", "error", "warn", "info", "debug", "trace", "silent"],
    "least severe level that is logged, on standard output: `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`",
  ),
  LOG_FORMAT: choice(
    "auto",
    ["auto", "json", "text"],
    "format of the log: `json`; `text`, for people; or `auto`, which is `text` on a terminal and `json` otherwise",
  ),
  METRICS_PORT: integer(0, [0, 65535], "port that serves `/metrics` for Prometheus without a key; 0: none"),
  METRICS_HOST: text("127.0.0.1", "address that METRICS_PORT is on; anyone who can reach it can read the metrics"),
  DATA_DIR: Type.String({
    default: "./data",
    minLength: 1,
    description: "directory for all persistent data; created if missing",
  }),
  STORE_URL: text(
    "sqlite:",
    "where tasks are stored: `sqlite:` (DATA_DIR/tasks.db), `sqlite:<path>`, `memory:`, or `postgres://user:password@host/database`, which several processes can share",
  ),
  ROLE: choice(
    "all",
    ["all", "api", "worker"],
    "what the process does: `api` serves requests, `worker` runs tasks and serves only `/health/`, `all` does both",
  ),
  DRAIN_MS: integer(
    0,
    [0, 60_000],
    "how long to keep serving after SIGTERM while `/health/ready` responds with 503, so that load balancers stop sending requests, milliseconds",
  ),
  HEARTBEAT_S: integer(
    10,
    [10, 3_600],
    "how long a worker may go without a heartbeat before its tasks are requeued, seconds; must be the same for all processes",
  ),
  RESOLVER: text(
    "auto",
    "what reads pages: `page`; `yt-dlp`; `auto`, which is `page` and uses yt-dlp where it helps; or `stub`, which fetches nothing",
  ),
  YTDLP: text("", "path of the program yt-dlp; empty: it is looked for on PATH; `off`: none is used"),
  YTDLP_COOKIES: text(
    "",
    "file of cookies (Netscape format) with which yt-dlp reads pages as a logged-in user; each run gets a copy",
  ),
  YTDLP_CONCURRENCY: integer(
    2,
    [1, 64],
    "pages that yt-dlp reads at a time; others wait, and owners take turns; an owner with none gets one more while another has several",
  ),
  ALLOW_NETWORKS: text(
    "",
    "non-public networks that may be fetched from: comma-separated CIDR blocks, e.g. `127.0.0.0/8,::1/128`; IPv4 counts as such in every IPv6 form",
  ),
  SPONSORBLOCK_URL: Type.String({
    default: "https://sponsor.ajay.app",
    isEmptyAllowed: true,
    description:
      "SponsorBlock service for tasks with `skip`; it gets only 4 digits of the hash of the video's id; empty: none",
  }),
  FETCHES_PER_HOST: integer(
    4,
    [1, 256],
    "concurrent requests per host; others wait, and owners take turns; an owner with none gets one more while another has several",
  ),
  HOST_DELAY_MS: integer(
    0,
    [0, 600_000],
    "least time between two pages of one host that each process begins to read, milliseconds; owners take turns; requests to `/info` wait within INFO_TIMEOUT_MS",
  ),
  PAGE_MAX_BYTES: integer(8 * MiB, [KiB, 256 * MiB], "largest page or manifest, bytes after decompression"),
  INFO_TIMEOUT_MS: integer(
    15_000,
    [1, 600_000],
    "time limit for reading one page, or for a thumbnail with its page, milliseconds",
  ),
  INFO_CACHE_TTL_S: integer(
    300,
    [0, 86_400],
    "how long a page's information is cached for a key, seconds; 0: not at all",
  ),
  INFO_CONCURRENCY: integer(
    64,
    [1, 10_000],
    "pages that are read at a time, shared between keys; further requests get 429",
  ),
  TASK_OPTIONS: text(
    "",
    'options of every task that a request does not state, as JSON: `{"max_height": 1080, "subtitles": true}`; any but `format_id`, `ranges` and `entries`',
  ),
  ENGINE: text("native", "what downloads: `native`"),
  CONCURRENCY: integer(
    3,
    [0, 256],
    "tasks that run at a time, and one more of a key that has none while another has several; 0: none, tasks stay queued",
  ),
  CONCURRENCY_PER_HOST: integer(
    2,
    [1, 256],
    "tasks that run at a time for pages of one host, and one more of a key that has none there while another has several",
  ),
  CONCURRENT_FRAGMENTS: integer(6, [1, 64], "segments that one task fetches at a time from one host"),
  MAX_ATTEMPTS: integer(8, [1, 1_000], "attempts per task; only retryable errors are retried"),
  RETRY_BACKOFF_MS: integer(
    2_000,
    [0, 300_000],
    "longest delay before the second attempt, milliseconds; doubles with each attempt, up to 5 minutes; shortened at random by up to half",
  ),
  RUN_TIMEOUT_S: integer(21_600, [1, 604_800], "time limit for one run, seconds"),
  IDLE_TIMEOUT_MS: integer(30_000, [1, 600_000], "longest wait for the next byte of a download, milliseconds"),
  MIN_SPEED_BPS: integer(
    KiB,
    [0, GiB],
    "least speed of each transfer of a download, bytes per second averaged over 60 s; 0: any",
  ),
  MAX_SPEED_BPS: integer(
    0,
    [0, 100 * GiB],
    "how fast all processes that share the store receive media, all their tasks together, bytes per second; 0: any speed",
  ),
  MAX_SPEED_PER_HOST_BPS: integer(
    0,
    [0, 100 * GiB],
    "how fast they receive media from one host, bytes per second; 0: any speed",
  ),
  MAX_FILE_BYTES: integer(10 * GiB, [1, Number.MAX_SAFE_INTEGER], "largest file that is downloaded, bytes"),
  MIN_FREE_BYTES: integer(
    GiB,
    [0, Number.MAX_SAFE_INTEGER],
    "disk space to keep free, bytes; a download that would use it fails with `disk_full`",
  ),
  MAX_LIVE_S: integer(14_400, [0, 604_800], "how much of a live stream is recorded, seconds; 0: none, such tasks fail"),
  MAX_QUEUED: integer(
    100_000,
    [1, 100_000_000],
    "queue limit; further tasks get 503; the tasks of one key take nine tenths of what those of others leave, and further ones get 429",
  ),
  MAX_ENTRIES: integer(
    10_000,
    [1, 1_000_000],
    "entries of a playlist that become tasks; a collection without the further ones has the warning `entries_limited`",
  ),
  RETENTION_S: integer(
    0,
    [0, 315_360_000],
    "how long a finished task and its file are kept, seconds; 0: until deleted",
  ),
  MAX_STORED_BYTES: integer(
    0,
    [0, Number.MAX_SAFE_INTEGER],
    "limit for the files of all tasks together, bytes: the oldest finished files are removed first, and their tasks stay; 0: no limit; must be the same for all processes",
  ),
  LIBRARY_DIR: text(
    "",
    "folder in which finished files appear under readable names, where media centres find them; it must exist; empty: none; must be the same for all processes",
  ),
  LIBRARY_TEMPLATE: text(
    defaultTemplate,
    "names of these files and of those in archives, without extensions: fields in braces, with dates (`{uploaded_at:date}`) and digits (`{playlist_index:03}`); what is in brackets is left out if its field is unknown",
  ),
  LIBRARY_LINK: choice(
    "copy",
    ["copy", "hard"],
    "how they get there: `copy`, which shares blocks with the file of the task if the disk can; or `hard`, a hard link to it, with its mode and owner",
  ),
  LIBRARY_MODE: Type.String({
    default: "0644",
    pattern: "^0?[0-7]{3}$",
    description: "permissions of files in the library, octal; folders can also be entered by those who may read",
  }),
  LIBRARY_NFO: choice("off", ["on", "off"], "whether each video in the library gets an `.nfo` for Jellyfin and Kodi"),
  WEBHOOK_URL: text(
    "",
    "URL that is called when a task has ended, private addresses included; must be the same for all processes",
  ),
  WEBHOOK_SECRET: text(
    "",
    "signs these calls: `whsec_` and 24 to 64 random bytes in base64, as Standard Webhooks defines it",
  ),
});
export type Settings = Static<typeof Settings>;
