import { h, type ComponentChild } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { NothingYet, TaskBoard } from "./task-board.ts";
import type { Tasks } from "./tasks.ts";

interface TasksProps {
  tasks: Tasks;
}

/** The tasks of the service, newest first, as they change. */
export function TaskList({ tasks }: TasksProps): ComponentChild {
  useEffect(() => followWhileVisible(tasks), [tasks]);
  return h(
    "section",
    { class: "stack", "aria-labelledby": "downloads" },
    h("h2", { id: "downloads", tabIndex: -1 }, "Downloads"),
    h(Content, { tasks }),
    tasks.isConnectionLost.value &&
      h("p", { class: "card task-lost" }, "The connection is lost. Trying again…"),
  );
}

/** Stays as it is once there was a task, so that the focus does. */
function Content({ tasks }: TasksProps): ComponentChild {
  const hadTasks = useRef(false);
  hadTasks.current ||= tasks.shown.value.length > 0;
  if (hadTasks.current) return h(TaskBoard, { tasks });
  return tasks.isRead.value && h(NothingYet, {});
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
