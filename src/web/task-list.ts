import { useSignal, useSignalEffect } from "@preact/signals";
import { h, type ComponentChild, type FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";
import type { Tasks } from "./tasks.ts";
import { formatSpeed, nothingYet } from "./texts.ts";

interface TasksProps {
  tasks: Tasks;
}

/** The tasks of the service, newest first, as they change. */
export function TaskList({ tasks }: TasksProps): ComponentChild {
  useEffect(() => followWhileVisible(tasks), [tasks]);
  return h(
    "section",
    { class: "stack", "aria-labelledby": "downloads" },
    h(
      "div",
      { class: "row task-head" },
      h("h2", { id: "downloads", tabIndex: -1 }, "Downloads"),
      h(Running, { tasks }),
    ),
    h(Board, { tasks }),
    tasks.isConnectionLost.value &&
      h("p", { class: "card task-lost" }, "The connection is lost. Trying again…"),
  );
}

/** The board, which is loaded when there is a task. */
function Board({ tasks }: TasksProps): ComponentChild {
  const board = useSignal<FunctionComponent<TasksProps>>();
  const hasTasks = useSignal(false);
  useSignalEffect(() => void (hasTasks.value ||= tasks.shown.value.length > 0));
  useSignalEffect(() => {
    if (hasTasks.value) void loadBoard().then((loaded) => (board.value = loaded));
  });
  if (board.value !== undefined) return h(board.value, { tasks });
  if (hasTasks.value || !tasks.isRead.value) return null;
  return h("p", { class: "muted" }, nothingYet);
}

async function loadBoard(): Promise<FunctionComponent<TasksProps>> {
  try {
    const { TaskBoard } = await import("./task-board.ts");
    return TaskBoard;
  } catch (error) {
    // The service has a newer page, or none at the moment.
    console.warn(error);
    return () => h("p", { class: "failure" }, "This page is outdated. Please load it again.");
  }
}

function Running({ tasks }: TasksProps): ComponentChild {
  const { count, speed } = tasks.running.value;
  return count > 0 && h("p", { class: "muted" }, `${count} running · ${formatSpeed(speed)}`);
}

/** Follows the service only while somebody looks, as all tabs together have six connections. */
function followWhileVisible(tasks: Tasks): () => void {
  let following: AbortController | undefined;
  const stop = () => {
    following?.abort();
    following = undefined;
  };
  const update = () => {
    if (document.hidden) stop();
    else if (following === undefined) {
      following = new AbortController();
      void tasks.follow(following.signal);
    }
  };
  document.addEventListener("visibilitychange", update);
  update();
  return () => {
    document.removeEventListener("visibilitychange", update);
    stop();
  };
}
