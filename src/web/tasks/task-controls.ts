import { type ReadonlySignal, useSignal } from "@preact/signals";
import { type ComponentChild, h } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { ResultFile, Task, TaskFile } from "../../model/task.ts";
import { hasSession } from "../session.ts";
import type { TaskAction } from "../api.ts";
import { curlCommand } from "./task-texts.ts";

/** What can be done with a task; `again`: creates another one for its page. */
export type RowAction = TaskAction | "again";

interface ActionProps {
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
  return h("button", { "aria-describedby": titleId(id), onClick }, label);
}

/** Returns the id of the element that names the task. */
export function titleId(id: string): string {
  return `title-${id}`;
}

/** What can be opened below a task that has a file, or is being downloaded. */
export type FilePart = "player" | "command";

interface FileActionsProps extends ActionProps {
  opened: FilePart | undefined;
  onOpen: (part: FilePart | undefined) => void;
}

interface ToggleProps extends Omit<FileActionsProps, "onAction"> {
  part: FilePart;
  label: string;
}

export function Toggle({ task, opened, onOpen, part, label }: ToggleProps): ComponentChild {
  const isOpen = opened === part;
  const onClick = () => onOpen(isOpen ? undefined : part);
  const { id } = task.peek();
  return h("button", { "aria-describedby": titleId(id), "aria-expanded": isOpen, onClick }, label);
}

/** What can be done with a file. One line of buttons, as a running download has: the row keeps its height. */
export function FileActions(props: FileActionsProps): ComponentChild {
  const { id } = props.task.peek();
  return [
    h(Toggle, { ...props, part: "player", label: "Play" }),
    h("a", { class: "button", href: fileOf(id), download: "", "aria-describedby": titleId(id) }, "Save"),
    h(
      "details",
      { class: "task-detail" },
      h("summary", { "aria-describedby": titleId(id) }, "More"),
      h(
        "div",
        { class: "row" },
        h(Toggle, { ...props, part: "command", label: "Copy curl command" }),
        h(ActionButton, { ...props, action: "delete-file", label: "Delete file only" }),
        h(ActionButton, { ...props, action: "delete", label: "Delete" }),
      ),
    ),
  ];
}

/**
 * Plays what has been downloaded so far, then the file from the same place on, in which the user can go anywhere. Brings itself into view.
 */
export function Player({ task }: { task: Task }): ComponentChild {
  const { id, file, files = [], options } = task;
  const player = useRef<HTMLMediaElement>(null);
  const source = file === null ? `tasks/${id}/stream` : fileOf(id);
  // Before the click is over, as browsers play nothing by themselves.
  useLayoutEffect(() => player.current?.scrollIntoView({ block: "nearest", behavior: scrolling() }), []);
  useLayoutEffect(() => {
    if (player.current !== null) playFrom(player.current, source);
  }, [source]);
  const isAudio = file === null ? options.audio_only === true : file.mime_type.startsWith("audio/");
  const media = {
    ref: player,
    class: "task-part",
    controls: true,
    preload: "metadata",
    "aria-labelledby": titleId(id),
    ...(!isAudio && { playsInline: true, ...sizeOf(file) }),
  };
  return h(
    isAudio ? "audio" : "video",
    media,
    files.filter(({ mime_type }) => mime_type === "text/vtt").map(textTrack),
  );
}

/** Browsers show no subtitles that are in an MP4. Those with a language and no label are named by it. */
function textTrack({ url, language, role = "subtitles" }: ResultFile): ComponentChild {
  return h("track", {
    key: url,
    src: url.slice(1),
    kind: role === "captions" ? role : "subtitles",
    srclang: language ?? undefined,
    label: role === "subtitles" ? undefined : `${language ?? "?"}, ${role}`,
    default: role === "forced",
  });
}

/** Their ratio alone counts: so much room is kept until the player knows. */
function sizeOf(file: TaskFile | null): { width: number; height: number } {
  const { width = null, height = null } = file ?? {};
  return width === null || height === null ? { width: 16, height: 9 } : { width, height };
}

function scrolling(): "instant" | "smooth" {
  return matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
}

/** Plays a source: the first one from its start, another one from where the last one is, and only if that plays. */
function playFrom(player: HTMLMediaElement, source: string): void {
  const { currentTime, paused, ended } = player;
  const isFirst = !player.hasAttribute("src");
  player.src = source;
  player.currentTime = currentTime;
  // What the browser refuses to play, the user can still start.
  if (isFirst || (!paused && !ended)) player.play().catch(() => {});
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
