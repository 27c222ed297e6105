import { signal } from "@preact/signals";
import type { Task, TaskFailure, TaskOptions } from "../../model/task.ts";
import { ApiError, createTask, readInfo } from "../api.ts";
import type { Finder, Finding } from "./finding.ts";

/** @param onTask is called with each new task. */
export function createFinder(onTask: (task: Task) => void): Finder {
  const finding = signal<Finding | undefined>();
  const adding = signal(false);
  const added = signal<{ text: string } | undefined>();
  let reading = new AbortController();

  const show = (next: Finding | undefined): void => {
    reading.abort();
    reading = new AbortController();
    finding.value = next;
  };

  /** Shows what `load` returns; its failure can be retried. */
  const load = async (read: (signal: AbortSignal) => Promise<Finding>): Promise<void> => {
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
  };

  const look = (url: string): void => {
    history.replaceState(null, "", `?url=${encodeURIComponent(url)}`);
    void load(async (stopped) => {
      // What shows it is loaded meanwhile.
      const [info, { Found }] = await Promise.all([readInfo(url, stopped), import("./found.ts")]);
      return { state: "found", info, Found };
    });
  };

  const close = (): void => {
    show(undefined);
    history.replaceState(null, "", location.pathname);
  };

  const download = async (url: string, options: TaskOptions, title: string): Promise<void> => {
    if (adding.value) return;
    adding.value = true;
    const shown = finding.peek();
    try {
      onTask(await createTask(url, options));
      added.value = { text: `Added: ${title}` };
      if (finding.peek() === shown) close();
    } catch (error) {
      const retry = (): void => void download(url, options, title);
      const failed = { state: "failed", failure: toFailure(error), retry } as const;
      // Another page may be shown by now.
      if (finding.peek() === shown || finding.peek() === undefined) finding.value = failed;
      else added.value = { text: `Not added: ${title}` };
    } finally {
      adding.value = false;
    }
  };

  const downloadAll: (...job: Parameters<Finder["downloadAll"]>) => Promise<void> = async (
    urls,
    options,
    onDone,
  ) => {
    if (adding.value) return;
    adding.value = true;
    const shown = finding.peek();
    let count = 0;
    for (const url of urls) {
      try {
        onTask(await createTask(url, options));
        count++;
        onDone(url, undefined);
      } catch (error) {
        onDone(url, toFailure(error));
      }
    }
    adding.value = false;
    if (count > 0) added.value = { text: `Added: ${count} of ${urls.length} videos` };
    if (count === urls.length && finding.peek() === shown) close();
  };

  return {
    finding,
    adding,
    added,
    look,
    close,
    download: (...job) => void download(...job),
    downloadAll: (...job) => void downloadAll(...job),
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
