/** A metric: its name and help are what dashboards and alerts use. */
export interface Definition {
  name: string;
  help: string;
  labelNames?: string[];
}

interface BucketDefinition extends Definition {
  /** Upper bounds, seconds. */
  buckets: number[];
}

export const counters = {
  requests: {
    name: "unreel_http_requests_total",
    help: "Requests by documented route and status; other: any other path or method",
    labelNames: ["method", "route", "status"],
  },
  servedBytes: { name: "unreel_file_served_bytes_total", help: "Bytes of tasks' files that were sent" },
  storeFailures: {
    name: "unreel_store_failures_total",
    help: "Calls of the task store that failed because it is unavailable or damaged",
    labelNames: ["method"],
  },
  blocked: {
    name: "unreel_blocked_addresses_total",
    help: "Connections that were refused because their address is not public",
    labelNames: ["reason"],
  },
  runsStarted: {
    name: "unreel_runs_started_total",
    help: "Runs of tasks that this process started, one per attempt unless a worker dies",
  },
  runsEnded: {
    name: "unreel_runs_ended_total",
    help: "Ended runs by outcome, and by error code if they failed or are retried",
    labelNames: ["outcome", "code"],
  },
  downloadedBytes: {
    name: "unreel_downloaded_bytes_total",
    help: "Bytes of media that downloads have received",
  },
  engineDeaths: {
    name: "unreel_engine_deaths_total",
    help: "Worker processes that ended during a download: crashed, or killed at a limit",
    labelNames: ["cause"],
  },
  deliveries: {
    name: "unreel_webhook_deliveries_total",
    help: "Requests with a message by outcome, and messages that were given up without one",
    labelNames: ["outcome"],
  },
} satisfies Record<string, Definition>;

export const gauges = {
  runsActive: { name: "unreel_runs_active", help: "Runs of tasks in this process now" },
  engineProcesses: { name: "unreel_engine_processes", help: "Worker processes of the download engine now" },
} satisfies Record<string, Definition>;

/** Set when the metrics are read. */
export const readGauges = {
  tasks: {
    name: "unreel_tasks",
    help: "Tasks in the store by state; of a shared store, each process reports the same",
    labelNames: ["state"],
  },
  oldestTask: {
    name: "unreel_oldest_queued_task_age_seconds",
    help: "Time since the oldest queued task was created, 0 if none is queued",
  },
  freeBytes: { name: "unreel_disk_free_bytes", help: "Free space on the disk of DATA_DIR" },
  messages: {
    name: "unreel_webhook_messages",
    help: "Messages in the outbox; of a shared store, each process reports the same",
  },
  oldestMessage: {
    name: "unreel_oldest_webhook_message_age_seconds",
    help: "Time since the task of the oldest message in the outbox has ended, 0 if there is none",
  },
} satisfies Record<string, Definition>;

export const histograms = {
  requestSeconds: {
    name: "unreel_http_request_duration_seconds",
    help: "Time from a request to the end of its response",
    labelNames: ["method", "route"],
    buckets: [0.005, 0.025, 0.1, 0.5, 2.5, 10],
  },
  storeSeconds: {
    name: "unreel_store_call_duration_seconds",
    help: "Time of calls of the task store",
    labelNames: ["method"],
    buckets: [0.001, 0.005, 0.025, 0.1, 1],
  },
  resolverSeconds: {
    name: "unreel_resolver_duration_seconds",
    help: "Time to read a page, by resolver; auto asks the others",
    labelNames: ["resolver", "outcome"],
    buckets: [0.1, 0.5, 2, 5, 15],
  },
  runSeconds: {
    name: "unreel_run_duration_seconds",
    help: "Time of runs",
    buckets: [1, 5, 15, 60, 300, 1_800, 7_200],
  },
  deliverySeconds: {
    name: "unreel_webhook_delivery_duration_seconds",
    help: "Time of requests with a message",
    buckets: [0.01, 0.05, 0.25, 1, 5, 15],
  },
} satisfies Record<string, BucketDefinition>;

/** Those of prom-client about the process that an operator acts on; its heap spaces would be many series. */
export const processMetrics = (
  "process_cpu_user_seconds_total process_cpu_system_seconds_total process_cpu_seconds_total process_start_time_seconds " +
  "process_resident_memory_bytes process_open_fds process_max_fds nodejs_eventloop_lag_seconds " +
  "nodejs_eventloop_lag_p50_seconds nodejs_eventloop_lag_p99_seconds nodejs_eventloop_lag_max_seconds " +
  "nodejs_heap_size_total_bytes nodejs_heap_size_used_bytes nodejs_external_memory_bytes"
).split(" ");
