import { useSignal } from "@preact/signals";
import { h, type ComponentChild, type FunctionComponent } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { TaskBoardProps } from "./task-board.ts";
import type { Tasks } from "./tasks.ts";

interface TasksProps {
  tasks: Tasks;
}

/** The tasks of the service, newest first, as they change. */
export function TaskList({ tasks }: TasksProps): ComponentChild {
  // Not after the first paint: the list is what the page is waited for.
  useLayoutEffect(() => followWhileVisible(tasks), [tasks]);
  return h(
    "section",
    { class: "stack", "aria-labelledby": "downloads" },
    h("h2", { id: "downloads", tabIndex: -1 }, "Downloads"),
    h(Content, { tasks }),
    h(
      "div",
      { role: "status" },
      tasks.connection.value === "lost" && h("p", { class: "card task-lost" }, "The connection is lost. Reconnecting…"),
    ),
  );
}

type Board = FunctionComponent<TaskBoardProps>;

/** The board, which is loaded when there is a task to show, and then stays. */
function Content({ tasks }: TasksProps): ComponentChild {
  const words = "Nothing here yet. Paste the address of a page with a video.";
  const nothingYet = h("p", { class: "muted" }, words);
  const board = useSignal<Board>();
  const isWanted = useRef(false);
  if (board.value !== undefined) return h(board.value, { tasks, nothingYet });
  if (tasks.shown.value.length > 0 && !isWanted.current) {
    isWanted.current = true;
    void loadBoard().then((loaded) => (board.value = loaded));
  }
  return tasks.isRead.value && !isWanted.current && nothingYet;
}

async function loadBoard(): Promise<Board> {
  try {
    return (await import("./task-board.ts")).TaskBoard;
  } catch (error) {
    // The service has a newer page, or none at the moment.
    console.warn(error);
    return () => h("p", { class: "failure" }, "This page is outdated. Please load it again.");
  }
}

/** Follows the service only while the page is visible, as all tabs together have six connections. */
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
