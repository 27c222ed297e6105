import type { ReadonlySignal } from "@preact/signals";
import type { ComponentType } from "preact";
import type { Entry } from "../../model/entry.ts";
import type { PageInfo } from "../../model/page-info.ts";
import type { TaskFailure } from "../../model/progress.ts";
import type { TaskOptions } from "../../model/task.ts";

/** What the dialog shows. */
export type Finding =
  | { state: "looking" }
  | { state: "found"; info: PageInfo; Found: ComponentType<FoundProps> }
  | { state: "batch"; entries: readonly Entry[]; Choices: ComponentType<ChoicesProps> }
  | { state: "failed"; failure: TaskFailure; retry: () => void };

export interface FoundProps {
  info: PageInfo;
  finder: Finder;
}

/** What is downloaded besides the video with its own audio. */
export type Extras = Pick<TaskOptions, "subtitles" | "audio_languages" | "ranges">;

export type ExtraProps = FoundProps & { extras: Extras };

export interface ChoicesProps {
  /** Pages to choose from. */
  entries: readonly Entry[];
  finder: Finder;
}

/** Leads from an address to a task. Nothing is downloaded unless the user asks for it. */
export interface Finder {
  /** Undefined: there is nothing to show. */
  finding: ReadonlySignal<Finding | undefined>;
  /** Whether a task is being created. */
  adding: ReadonlySignal<boolean>;
  /** What was added last, in words; undefined before. */
  added: ReadonlySignal<{ text: string } | undefined>;
  /** Looks at what the text names: one page, or several to choose from. */
  open(text: string): void;
  look(url: string): void;
  /** Reads further entries of a page; returns it with them, or why it cannot be read. */
  readMore(url: string, cursor: string, signal: AbortSignal): Promise<PageInfo | TaskFailure>;
  /** Ends looking, or closes what was found. */
  close(): void;
  /** Creates the task that downloads the page; `title` says what was added. */
  download(url: string, options: TaskOptions, title: string): void;
  /**
   * Creates a task for each page. `onDone` is called after each with its failure, if it has one. Closes what is
   * shown once all are created.
   */
  downloadAll(
    urls: readonly string[],
    options: TaskOptions,
    onDone: (url: string, failure: TaskFailure | undefined) => void,
  ): void;
}
