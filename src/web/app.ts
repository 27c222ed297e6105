import { h, type ComponentChild } from "preact";
import { Find } from "./find/find.ts";
import { hasSession, Session } from "./session.ts";
import { SignIn } from "./sign-in.ts";
import { TaskList } from "./tasks/task-list.ts";
import type { Tasks } from "./tasks/tasks.ts";
import { WaysHere } from "./ways-here.ts";

/** The whole page; while the service needs a key, only the form for it. */
export function App({ tasks }: { tasks: Tasks }): ComponentChild {
  const isLocked = tasks.connection.value === "locked";
  return h(
    "div",
    { class: "page stack" },
    h(
      "header",
      { class: "row top" },
      h("h1", {}, "Unreel"),
      !isLocked && hasSession() && h(Session, {}),
      h(WaysHere, {}),
    ),
    h(
      "main",
      { class: "stack" },
      isLocked ? h(SignIn, {}) : [h(Find, { onTask: tasks.add }), h(TaskList, { tasks })],
    ),
  );
}
