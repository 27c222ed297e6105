import { type ReadonlySignal, useSignal } from "@preact/signals";
import { type ComponentChild, h } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Task } from "../../model/task.ts";
import { hasSession } from "../session.ts";
import type { TaskAction } from "./task-requests.ts";
import { curlCommand } from "./task-texts.ts";

/** What can be done with a task; `again`: creates another one for its page. */
export type RowAction = TaskAction | "again";

export interface ActionProps {
  task: ReadonlySignal<Task>;
  onAction: (task: Task, action: RowAction) => void;
}

interface ActionButtonProps extends ActionProps {
  action: RowAction;
  label: string;
}

export function ActionButton({ task, onAction, action, label }: ActionButtonProps): ComponentChild {
  const { id } = task.peek();
  const onClick = () => onAction(task.peek(), action);
  return h("button", { type: "button", "aria-describedby": titleId(id), onClick }, label);
}

/** Returns the id of the element that names the task. */
export function titleId(id: string): string {
  return `title-${id}`;
}

/** What can be opened below a task that has a file. */
export type FilePart = "player" | "command";

interface FileActionsProps extends ActionProps {
  opened: FilePart | undefined;
  onOpen: (part: FilePart | undefined) => void;
}

/** What can be done with a file. One line of buttons, as a running download has: the row keeps its height. */
export function FileActions({ opened, onOpen, ...props }: FileActionsProps): ComponentChild {
  const { id } = props.task.peek();
  const toggle = (part: FilePart, label: string) =>
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
    h("a", { class: "button", href: fileOf(id), download: "", "aria-describedby": titleId(id) }, "Save"),
    h(
      "details",
      { class: "task-detail" },
      h("summary", { "aria-describedby": titleId(id) }, "More"),
      h(
        "div",
        { class: "row" },
        toggle("command", "Copy curl command"),
        h(ActionButton, { ...props, action: "delete-file", label: "Delete file only" }),
        h(ActionButton, { ...props, action: "delete", label: "Delete" }),
      ),
    ),
  ];
}

/** Plays the file, and brings itself into view. */
export function Player({ task }: { task: Task }): ComponentChild {
  const { id, file } = task;
  const player = useRef<HTMLMediaElement>(null);
  // Before the click is over, as browsers play nothing by themselves.
  useLayoutEffect(() => {
    // What the browser refuses to play, the user can still start.
    player.current?.play().catch(() => {});
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    player.current?.scrollIntoView({ block: "nearest", behavior: isCalm ? "instant" : "smooth" });
  }, []);
  const isAudio = file?.mime_type.startsWith("audio/") === true;
  return h(isAudio ? "audio" : "video", {
    ref: player,
    class: "task-part",
    controls: true,
    preload: "metadata",
    "aria-labelledby": titleId(id),
    ...(!isAudio && { playsInline: true }),
    ...(!isAudio && file?.width != null && file.height != null ? { width: file.width, height: file.height } : {}),
    src: fileOf(id),
  });
}

/** The command in a field that is selected, as only pages with HTTPS may copy by themselves. */
export function Command({ id }: { id: string }): ComponentChild {
  const field = useRef<HTMLInputElement>(null);
  const isCopied = useSignal(false);
  const needsKey = hasSession();
  const command = curlCommand(new URL(fileOf(id), document.baseURI).href, needsKey);
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
    isCopied.value ? "Copied" : "Copy this",
    needsKey && " (the variable UNREEL_KEY must hold your key)",
    ": ",
    h("input", { ref: field, readOnly: true, value: command }),
  );
}

function fileOf(id: string): string {
  return `tasks/${id}/file`;
}
