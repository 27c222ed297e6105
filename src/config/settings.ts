import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "../model/schema.ts";

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/** Every environment variable that the service reads: type, bounds, default, meaning, unit. */
export const Config = Type.Object({
  HOST: Type.String({
    default: "127.0.0.1",
    description: "address to listen on; 0.0.0.0 or :: opens the service to the network",
  }),
  PORT: Type.Integer({
    default: 3000,
    minimum: 0,
    maximum: 65535,
    description: "port to listen on; 0 picks a free one",
  }),
  ALLOWED_HOSTS: Type.String({
    default: "",
    description:
      "public host names of the service, comma-separated; requests for others get 421, except for IP addresses and local names: one label, `*.local` and the like",
  }),
  WEB: {
    ...oneOf(["on", "off"], "whether there is a web UI at `/`"),
    default: "on",
  },
  CONNECTIONS_PER_IP: Type.Integer({
    default: 256,
    minimum: 1,
    maximum: 1_000_000,
    description:
      "connections of one client address (IPv6: /64 network), except loopback; a further one closes the one that has been idle longest",
  }),
  SEND_TIMEOUT_S: Type.Integer({
    default: 60,
    minimum: 1,
    maximum: 86_400,
    description: "how long a response may wait for its client to read before it is cut off, seconds",
  }),
  LOG_LEVEL: {
    ...oneOf(
      ["fatal", "error", "warn", "info", "debug", "trace", "silent"],
      "least severe level that is logged, as JSON on standard output: `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`",
    ),
    default: "info",
  },
  METRICS_PORT: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 65535,
    description: "port that serves `/metrics` for Prometheus without a key; 0: none",
  }),
  METRICS_HOST: Type.String({
    default: "127.0.0.1",
    description: "address that METRICS_PORT is on; whoever reaches it can read the metrics",
  }),
  DATA_DIR: Type.String({
    default: "./data",
    minLength: 1,
    description: "directory for all persistent data; created if missing",
  }),
  STORE_URL: Type.String({
    default: "sqlite:",
    description:
      "where tasks are stored: `sqlite:` (DATA_DIR/tasks.db), `sqlite:<path>`, `memory:`, or `postgres://user:password@host/database`, which several processes can share",
  }),
  ROLE: {
    ...oneOf(
      ["all", "api", "worker"],
      "what the process does: `api` serves requests, `worker` runs tasks and serves only `/health/`, `all` does both",
    ),
    default: "all",
  },
  DRAIN_MS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 60_000,
    description:
      "how long to keep serving after SIGTERM while `/health/ready` responds with 503, so that load balancers stop sending requests, milliseconds",
  }),
  HEARTBEAT_S: Type.Integer({
    default: 10,
    minimum: 10,
    maximum: 3_600,
    description:
      "how long a worker may go without a heartbeat before its tasks are requeued, seconds; must be the same for all processes",
  }),
  RESOLVER: Type.String({
    default: "auto",
    description:
      "what reads pages: `page`; `yt-dlp`; `auto`, which is `page` and uses yt-dlp where it helps; or `stub`, which fetches nothing",
  }),
  YTDLP: Type.String({
    default: "",
    description: "path of the program yt-dlp; empty: it is looked for on PATH; `off`: none is used",
  }),
  YTDLP_COOKIES: Type.String({
    default: "",
    description:
      "file of cookies (Netscape format) with which yt-dlp reads pages, as a person who is logged in; each run gets a copy",
  }),
  YTDLP_CONCURRENCY: Type.Integer({
    default: 2,
    minimum: 1,
    maximum: 64,
    description: "pages that yt-dlp reads at a time; further ones wait",
  }),
  ALLOW_NETWORKS: Type.String({
    default: "",
    description:
      "non-public networks that may be fetched from: comma-separated CIDR blocks, e.g. `127.0.0.0/8,::1/128`; IPv4 counts as such in every IPv6 form",
  }),
  FETCHES_PER_HOST: Type.Integer({
    default: 4,
    minimum: 1,
    maximum: 256,
    description: "concurrent requests per host; others wait",
  }),
  PAGE_MAX_BYTES: Type.Integer({
    default: 8 * MiB,
    minimum: KiB,
    maximum: 256 * MiB,
    description: "largest page or manifest, bytes after decompression",
  }),
  INFO_TIMEOUT_MS: Type.Integer({
    default: 15_000,
    minimum: 1,
    maximum: 600_000,
    description: "time limit for reading one page, or a thumbnail of one, milliseconds",
  }),
  INFO_CACHE_TTL_S: Type.Integer({
    default: 300,
    minimum: 0,
    maximum: 86_400,
    description: "how long a page's information is cached, seconds; 0: not at all",
  }),
  INFO_CONCURRENCY: Type.Integer({
    default: 64,
    minimum: 1,
    maximum: 10_000,
    description: "pages that are read at a time; further requests get 429",
  }),
  ENGINE: Type.String({
    default: "native",
    description: "what downloads: `native`",
  }),
  CONCURRENCY: Type.Integer({
    default: 3,
    minimum: 0,
    maximum: 256,
    description: "tasks that run at a time; 0: none, tasks stay queued",
  }),
  CONCURRENCY_PER_HOST: Type.Integer({
    default: 2,
    minimum: 1,
    maximum: 256,
    description: "tasks that run at a time for pages of one host",
  }),
  CONCURRENT_FRAGMENTS: Type.Integer({
    default: 6,
    minimum: 1,
    maximum: 64,
    description: "segments that one task fetches at a time from one host",
  }),
  MAX_ATTEMPTS: Type.Integer({
    default: 5,
    minimum: 1,
    maximum: 1_000,
    description: "attempts per task; only retryable errors are retried",
  }),
  RETRY_BACKOFF_MS: Type.Integer({
    default: 2_000,
    minimum: 0,
    maximum: 300_000,
    description:
      "longest delay before the second attempt, milliseconds; doubles with each attempt, up to 5 minutes; a random part of up to half is left out",
  }),
  RUN_TIMEOUT_S: Type.Integer({
    default: 21_600,
    minimum: 1,
    maximum: 604_800,
    description: "time limit for one run, seconds",
  }),
  IDLE_TIMEOUT_MS: Type.Integer({
    default: 30_000,
    minimum: 1,
    maximum: 600_000,
    description: "longest wait for the next byte of a download, milliseconds",
  }),
  MIN_SPEED_BPS: Type.Integer({
    default: KiB,
    minimum: 0,
    maximum: GiB,
    description: "least speed of each transfer of a download, bytes per second averaged over 60 s; 0: any",
  }),
  MAX_FILE_BYTES: Type.Integer({
    default: 10 * GiB,
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: "largest file that is downloaded, bytes",
  }),
  MIN_FREE_BYTES: Type.Integer({
    default: GiB,
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: "disk space to keep free, bytes; a download that would use it fails with `disk_full`",
  }),
  MAX_LIVE_S: Type.Integer({
    default: 14_400,
    minimum: 0,
    maximum: 604_800,
    description: "how much of a live stream is recorded, seconds; 0: none, such tasks fail",
  }),
  MAX_QUEUED: Type.Integer({
    default: 100_000,
    minimum: 1,
    maximum: 100_000_000,
    description: "queue limit; further tasks get 503",
  }),
  RETENTION_S: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 315_360_000,
    description: "how long a finished task and its file are kept, seconds; 0: until deleted",
  }),
  MAX_STORED_BYTES: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description:
      "limit for the files of all tasks together, bytes: the oldest finished files are removed first, and their tasks stay; 0: no limit; must be the same for all processes",
  }),
  WEBHOOK_URL: Type.String({
    default: "",
    description:
      "URL that is called when a task has ended, private addresses included; must be the same for all processes",
  }),
  WEBHOOK_SECRET: Type.String({
    default: "",
    description: "signs these calls: `whsec_` and 24 to 64 random bytes in base64, as Standard Webhooks has it",
  }),
});
export type Config = Static<typeof Config>;
