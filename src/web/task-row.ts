import { type ReadonlySignal, useSignal } from "@preact/signals";
import { h, type ComponentChild } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Task, TaskFile } from "../task.ts";
import {
  curlCommand,
  describeOptions,
  describeState,
  describeWarnings,
  taskTitle,
} from "./task-texts.ts";
import type { TaskAction } from "./tasks.ts";

export interface TaskRowProps {
  task: ReadonlySignal<Task>;
  /** Called with what somebody wants to be done with the task. */
  onAction: (task: Task, action: TaskAction) => void;
  /** The ids of the chosen tasks; undefined: none can be chosen now. */
  selected: ReadonlySignal<ReadonlySet<string> | undefined>;
  onSelect: (id: string, isSelected: boolean) => void;
}

/** One task: what it is, how it is doing, and what can be done with it. */
export function TaskRow(props: TaskRowProps): ComponentChild {
  const task = props.task.value;
  const { id, info, url, options, state } = task;
  const opened = useSignal<"player" | "command" | undefined>(undefined);
  const about = [describeOptions(options), ...(info?.uploader == null ? [] : [info.uploader])];
  return h(
    "article",
    { class: "card task", "aria-labelledby": titleId(id), tabIndex: -1, "data-state": state },
    h(SelectBox, props),
    h(Thumbnail, { id, isKnown: (info?.thumbnails.length ?? 0) > 0 }),
    h(
      "div",
      { class: "task-text" },
      h(
        "h3",
        { class: "task-title" },
        h(
          "a",
          { id: titleId(id), href: url, target: "_blank", rel: "noreferrer" },
          taskTitle(task),
        ),
      ),
      h(
        "p",
        { class: `task-line task-state${state === "failed" ? " failure" : ""}` },
        describeState(task),
      ),
      h("p", { class: "task-line muted" }, about.join(" · ")),
      h(Bar, { task }),
    ),
    h(
      "div",
      { class: "row task-actions" },
      state === "succeeded"
        ? h(FileActions, {
            ...props,
            opened: opened.value,
            onOpen: (part) => (opened.value = part),
          })
        : actionsOf(task).map(([action, label]) =>
            h(ActionButton, { ...props, key: action, action, label }),
          ),
      h(RawError, { error: task.error }),
    ),
    h(Warnings, { file: task.file }),
    state === "succeeded" && opened.value === "player" && h(Player, { task }),
    state === "succeeded" && opened.value === "command" && h(Command, { id }),
  );
}

/** What can be done with a task that has no file. */
function actionsOf({ state, progress, finish_requested }: Task): [TaskAction, string][] {
  if (state === "failed" || state === "canceled") {
    return [
      ["retry", "Retry"],
      ["delete", "Delete"],
    ];
  }
  if (progress?.is_live !== true) return [["cancel", "Cancel"]];
  if (finish_requested === true) return [["cancel", "Discard"]];
  return [
    ["finish", "Stop and keep"],
    ["cancel", "Discard"],
  ];
}

interface ActionButtonProps extends TaskRowProps {
  action: TaskAction;
  label: string;
}

function ActionButton({ task, onAction, action, label }: ActionButtonProps): ComponentChild {
  const { id } = task.peek();
  const onClick = () => onAction(task.peek(), action);
  return h("button", { type: "button", "aria-describedby": titleId(id), onClick }, label);
}

interface FileActionsProps extends TaskRowProps {
  opened: "player" | "command" | undefined;
  onOpen: (part: "player" | "command" | undefined) => void;
}

function FileActions({ opened, onOpen, ...props }: FileActionsProps): ComponentChild {
  const { id } = props.task.peek();
  const toggle = (part: "player" | "command", label: string) =>
    h(
      "button",
      {
        type: "button",
        "aria-describedby": titleId(id),
        "aria-expanded": opened === part,
        onClick: () => onOpen(opened === part ? undefined : part),
      },
      label,
    );
  return [
    toggle("player", "Play"),
    h(
      "a",
      { class: "button", href: fileOf(id), download: "", "aria-describedby": titleId(id) },
      "Save",
    ),
    toggle("command", "Copy curl command"),
    h(ActionButton, { ...props, action: "delete", label: "Delete" }),
  ];
}

function SelectBox({ task, selected, onSelect }: TaskRowProps): ComponentChild {
  const ids = selected.value;
  if (ids === undefined) return null;
  const { id } = task.peek();
  const onChange = ({ currentTarget }: { currentTarget: HTMLInputElement }) =>
    onSelect(id, currentTarget.checked);
  return h(
    "label",
    { class: "task-select" },
    h("input", {
      type: "checkbox",
      checked: ids.has(id),
      "aria-describedby": titleId(id),
      onChange,
    }),
    "Select",
  );
}

/** The picture of a page that has one, else its empty place. */
function Thumbnail({ id, isKnown }: { id: string; isKnown: boolean }): ComponentChild {
  const isBroken = useSignal(false);
  const onError = () => (isBroken.value = true);
  const image = { loading: "lazy", decoding: "async", alt: "", onError } as const;
  return h(
    "div",
    { class: "task-picture" },
    isKnown && !isBroken.value && h("img", { ...image, src: `tasks/${id}/thumbnail` }),
  );
}

/** Its place stays when there is nothing to show, so that nothing moves. */
function Bar({ task }: { task: Task }): ComponentChild {
  const { id, state, progress } = task;
  const { total_bytes: total, downloaded_bytes: bytes } = progress ?? {};
  const isKnown = progress?.stage === "downloading" && total != null && bytes != null && total > 0;
  return h(
    "div",
    { class: "task-bar" },
    state === "running" &&
      h("progress", {
        key: isKnown ? "known" : "unknown",
        "aria-labelledby": titleId(id),
        "aria-valuetext": describeState(task),
        ...(isKnown && { max: total, value: Math.min(bytes, total) }),
      }),
  );
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

function RawError({ error }: { error: Task["error"] }): ComponentChild {
  if (error === null) return null;
  return h(
    "details",
    { class: "task-detail" },
    h("summary", {}, "Details"),
    h("p", { class: "muted" }, `${error.code}: ${error.message}`),
  );
}

function Player({ task }: { task: Task }): ComponentChild {
  const { id, file } = task;
  const isAudio = file?.mime_type.startsWith("audio/") === true;
  return h(isAudio ? "audio" : "video", {
    class: "task-part",
    controls: true,
    preload: "metadata",
    "aria-labelledby": titleId(id),
    ...(!isAudio && { playsInline: true }),
    ...(!isAudio && file?.width != null && file.height != null
      ? { width: file.width, height: file.height }
      : {}),
    src: fileOf(id),
  });
}

/** The command in a field that is selected, as only pages with HTTPS may copy by themselves. */
function Command({ id }: { id: string }): ComponentChild {
  const field = useRef<HTMLInputElement>(null);
  const isCopied = useSignal(false);
  const command = curlCommand(new URL(fileOf(id), document.baseURI).href);
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
    const clipboard: Clipboard | undefined = navigator.clipboard;
    clipboard?.writeText(command).then(
      () => (isCopied.value = true),
      () => (isCopied.value = false),
    );
  }, [command]);
  return h(
    "label",
    { class: "task-part" },
    isCopied.value ? "Copied: " : "Copy this: ",
    h("input", { ref: field, readOnly: true, value: command }),
  );
}

function titleId(id: string): string {
  return `title-${id}`;
}

function fileOf(id: string): string {
  return `tasks/${id}/file`;
}
