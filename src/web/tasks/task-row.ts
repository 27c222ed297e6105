import { type ReadonlySignal, useSignal } from "@preact/signals";
import { h, type ComponentChild } from "preact";
import type { Task, TaskFile } from "../../model/task.ts";
import { Picture } from "../elements.ts";
import { mayRetry } from "./task-actions.ts";
import {
  ActionButton,
  Command,
  FileActions,
  type FilePart,
  Player,
  type RowAction,
  titleId,
  Toggle,
} from "./task-controls.ts";
import { describeOptions, describeState, describeWarnings, sumOf, taskTitle } from "./task-texts.ts";

export interface TaskRowProps {
  task: ReadonlySignal<Task>;
  /** Called with what is to be done with the task. */
  onAction: (task: Task, action: RowAction) => void;
  /** The ids of the chosen tasks; undefined: none can be chosen now. */
  selected: ReadonlySignal<ReadonlySet<string> | undefined>;
  onSelect: (id: string, isSelected: boolean) => void;
}

/** One task: what it is, how it is doing, and what can be done with it. */
export function TaskRow(props: TaskRowProps): ComponentChild {
  const task = props.task.value;
  const { id, info, url, options, state } = task;
  const hasFile = state === "succeeded" && task.file !== null;
  const opened = useSignal<FilePart | undefined>(undefined);
  const canPlay = hasFile || hasStream(task, opened.value === "player");
  const parts = { opened: opened.value, onOpen: (part: FilePart | undefined) => (opened.value = part) };
  const about = [describeOptions(options), ...(info?.uploader == null ? [] : [info.uploader])];
  return h(
    "article",
    { class: "card task", "aria-labelledby": titleId(id), tabIndex: -1, "data-state": state },
    h(SelectBox, props),
    h(Picture, { class: "task-picture", src: info?.thumbnails.length ? `tasks/${id}/thumbnail` : undefined }),
    h(
      "div",
      { class: "task-text" },
      h(
        "h3",
        { class: "task-title" },
        h("a", { id: titleId(id), href: url, target: "_blank", rel: "noreferrer" }, taskTitle(task)),
      ),
      h("p", { class: `task-line task-state${state === "failed" ? " failure" : ""}` }, describeState(task)),
      h("p", { class: "task-line muted" }, about.join(" · ")),
      h(Bar, { task }),
    ),
    h(
      "div",
      { class: "row task-actions" },
      h(Actions, { ...props, ...parts, hasFile, canPlay }),
      h(RawError, { error: task.error }),
    ),
    canPlay && opened.value === "player" && h(Player, { task }),
    hasFile && opened.value === "command" && h(Command, { id }),
    // Below what plays, as they come with the file.
    h(Warnings, { file: task.file }),
    hasFile && h(OtherFiles, { files: task.files ?? [] }),
  );
}

interface ActionsProps extends TaskRowProps {
  opened: FilePart | undefined;
  onOpen: (part: FilePart | undefined) => void;
  hasFile: boolean;
  canPlay: boolean;
}

function Actions({ hasFile, canPlay, ...props }: ActionsProps): ComponentChild {
  const { id, url, error } = props.task.value;
  if (hasFile) return h(FileActions, props);
  return [
    error?.code === "playlist" &&
      h(
        "a",
        { key: "list", class: "button", href: `?url=${encodeURIComponent(url)}`, "aria-describedby": titleId(id) },
        "Show the list",
      ),
    ...actionsOf(props.task.value).map(([action, label]) => h(ActionButton, { ...props, key: action, action, label })),
    // Last, so that it moves no other one when it comes.
    canPlay && h(Toggle, { ...props, key: "play", part: "player", label: "Play now" }),
  ];
}

/** Whether what has been downloaded so far can be played; what plays goes on with the next attempt. */
function hasStream({ state, kind, options, progress }: Task, isPlaying: boolean): boolean {
  if (kind !== undefined || options.ranges !== undefined) return false;
  if (state === "running" && progress?.stage !== "resolving") return true;
  return isPlaying && (state === "running" || state === "queued");
}

/** What can be done with a task that has no file. */
function actionsOf(task: Task): (readonly [RowAction, string])[] {
  const remove = ["delete", "Delete"] as const;
  const discard = ["cancel", "Discard"] as const;
  if (task.state === "succeeded") return task.kind === "collection" ? [remove] : [["again", "Download again"], remove];
  if (mayRetry(task)) return [["retry", "Retry"], remove];
  if (task.state === "failed") return [remove];
  if (task.progress?.is_live !== true) return [["cancel", "Cancel"]];
  return task.finish_requested === true ? [discard] : [["finish", "Stop and keep"], discard];
}

function SelectBox({ task, selected, onSelect }: TaskRowProps): ComponentChild {
  const ids = selected.value;
  if (ids === undefined) return null;
  const { id } = task.peek();
  const onChange = ({ currentTarget }: { currentTarget: HTMLInputElement }) => onSelect(id, currentTarget.checked);
  return h(
    "label",
    { class: "task-select" },
    h("input", { type: "checkbox", checked: ids.has(id), "aria-describedby": titleId(id), onChange }),
    "Select",
  );
}

/** Its space stays when there is nothing to show, so that nothing moves. */
function Bar({ task }: { task: Task }): ComponentChild {
  const { id, state } = task;
  const known = measure(task);
  return h(
    "div",
    { class: "task-bar" },
    state === "running" &&
      h("progress", {
        key: known === null ? "unknown" : "known",
        "aria-labelledby": titleId(id),
        "aria-valuetext": describeState(task),
        ...known,
      }),
  );
}

/** Returns how far a task is, null if that is not known: in bytes; of a collection, how many of its members have ended. */
function measure({ progress, counts }: Task): { max: number; value: number } | null {
  if (counts !== undefined) {
    const max = sumOf(counts);
    return max === 0 ? null : { max, value: max - counts.queued - counts.running };
  }
  const { stage, total_bytes: total, downloaded_bytes: bytes } = progress ?? {};
  if (stage !== "downloading" || total == null || bytes == null || total === 0) return null;
  return { max: total, value: Math.min(bytes, total) };
}

function Warnings({ file }: { file: TaskFile | null }): ComponentChild {
  if (file === null) return null;
  const sentences = describeWarnings(file);
  if (sentences.length === 0) return null;
  return h(
    "details",
    { class: "task-part" },
    h("summary", {}, sentences.join(" ")),
    file.warnings?.map(({ code, message }) => h("p", { class: "muted" }, `${code}: ${message}`)),
  );
}

/** What lies beside the film. */
function OtherFiles({ files }: { files: NonNullable<Task["files"]> }): ComponentChild {
  const others = files.filter(({ kind }) => kind !== "media");
  if (others.length === 0) return null;
  return h(
    "details",
    { class: "task-part" },
    h("summary", {}, `Other files (${others.length})`),
    h(
      "ul",
      { class: "row" },
      others.map(({ name, url }) =>
        h("li", { key: name }, h("a", { href: url.slice(1), download: name, dir: "auto" }, name)),
      ),
    ),
  );
}

function RawError({ error }: { error: Task["error"] }): ComponentChild {
  if (error === null) return null;
  return h(
    "details",
    { class: "task-detail" },
    h("summary", {}, "Details"),
    h("p", { class: "muted" }, `${error.code}: ${error.message}`),
  );
}
