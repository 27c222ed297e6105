import { type Signal, signal } from "@preact/signals";
import type { TaskFailure } from "../../model/progress.ts";
import type { Task } from "../../model/task.ts";
import { ApiError, createTask, createTasks, readInfo } from "../api.ts";
import type { Finder, Finding } from "./finding.ts";

/** @param onTask is called with each new task. */
export function createFinder(onTask: (task: Task) => void): Finder {
  const viewer = createViewer();
  return { ...viewer, ...createDownloads(viewer, onTask) };
}

type Viewer = Pick<Finder, "open" | "look" | "readMore" | "close"> & { finding: Signal<Finding | undefined> };

/** Reads and shows one thing at a time. */
function createViewer(): Viewer {
  const finding = signal<Finding | undefined>();
  let reading = new AbortController();

  function show(next: Finding | undefined): void {
    reading.abort();
    reading = new AbortController();
    finding.value = next;
  }

  /** Shows what `read` returns; its failure can be retried. */
  async function load(read: (signal: AbortSignal) => Promise<Finding>): Promise<void> {
    show({ state: "looking" });
    const { signal: stopped } = reading;
    try {
      const next = await read(stopped);
      if (!stopped.aborted) finding.value = next;
    } catch (error) {
      if (stopped.aborted) return;
      const failure = toFailure(error);
      finding.value = { state: "failed", failure, retry: () => void load(read) };
    }
  }

  function look(url: string): void {
    history.replaceState(null, "", `?url=${encodeURIComponent(url)}`);
    void load(async (stopped) => {
      // What shows it is loaded meanwhile.
      const [info, { Found }] = await Promise.all([readInfo(url, stopped), import("./found.ts")]);
      return { state: "found", info, Found };
    });
  }

  return {
    finding,
    look,
    readMore: (url, cursor, stopped) => readInfo(url, stopped, cursor).catch(toFailure),
    close() {
      show(undefined);
      history.replaceState(null, "", location.pathname);
    },
    open(text) {
      const urls = addressesIn(text);
      const [url] = urls;
      if (urls.length === 1 && url !== undefined) return look(url);
      if (urls.length === 0) return;
      const entries = urls.map((each) => ({ url: each, title: null, duration: null }));
      void load(async () => {
        const { Choices } = await import("./choices.ts");
        return { state: "batch", entries, Choices };
      });
    },
  };
}

/** Creates tasks for what is shown; a call while another one runs does nothing. */
function createDownloads({ finding, close }: Viewer, onTask: (task: Task) => void) {
  const adding = signal(false);
  const added = signal<{ text: string } | undefined>();

  async function run(job: (shown: Finding | undefined) => Promise<void>): Promise<void> {
    if (adding.value) return;
    adding.value = true;
    await job(finding.peek()).finally(() => (adding.value = false));
  }

  const download: Finder["download"] = (url, options, title) =>
    void run(async (shown) => {
      try {
        onTask(await createTask(url, options));
        added.value = { text: `Added: ${title}` };
        if (finding.peek() === shown) close();
      } catch (error) {
        const retry = () => download(url, options, title);
        const failed = { state: "failed", failure: toFailure(error), retry } as const;
        // Another page may be shown meanwhile.
        if (finding.peek() === shown || finding.peek() === undefined) finding.value = failed;
        else added.value = { text: `Not added: ${title}` };
      }
    });

  const downloadAll: Finder["downloadAll"] = (urls, options, onDone) =>
    void run(async (shown) => {
      const made = await createTasks(urls, options);
      let count = 0;
      for (const [index, result] of made.entries()) {
        const url = urls[index]!;
        if ("id" in result) {
          onTask(result);
          count++;
          onDone(url, undefined);
        } else onDone(url, result);
      }
      if (count > 0) added.value = { text: `Added: ${count} of ${urls.length} pages` };
      if (count === urls.length && finding.peek() === shown) close();
    });

  return { adding, added, download, downloadAll };
}

/** Returns the addresses in a text, each once; a text without any is taken for one without its scheme. */
export function addressesIn(text: string): string[] {
  const trimmed = text.trim();
  if (trimmed === "") return [];
  const found = [...trimmed.matchAll(/https?:\/\/[^\s<>"]+/gi)].map(([url]) => url);
  if (found.length > 0) return [...new Set(found.map((url) => url.replace(/[.,;]+$/, "")))];
  return [/^[a-z][a-z\d+.-]*:\/\//i.test(trimmed) ? trimmed : `https://${trimmed}`];
}

/** Failures of other kinds come from modules that cannot be loaded. */
function toFailure(error: unknown): TaskFailure {
  if (error instanceof ApiError) return error;
  return { code: "connection_lost", message: String(error), retryable: true };
}
