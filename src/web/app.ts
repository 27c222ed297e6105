import { h, type ComponentChild } from "preact";
import { Find } from "./find.ts";
import { TaskList } from "./task-list.ts";
import type { Tasks } from "./tasks.ts";
import { WaysHere } from "./ways-here.ts";

/** The whole page. */
export function App({ tasks }: { tasks: Tasks }): ComponentChild {
  return h(
    "div",
    { class: "page stack" },
    h("header", { class: "row top" }, h("h1", {}, "Unreel"), h(WaysHere, {})),
    h("main", { class: "stack" }, h(Find, { onTask: tasks.add }), h(TaskList, { tasks })),
  );
}
