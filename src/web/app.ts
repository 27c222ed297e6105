import { h, type ComponentChild } from "preact";
import { Find } from "./find.ts";
import { Footer } from "./footer.ts";
import { TaskList } from "./task-list.ts";
import type { Tasks } from "./tasks.ts";

/** The whole page. */
export function App({ tasks }: { tasks: Tasks }): ComponentChild {
  return h(
    "div",
    { class: "page stack" },
    h("header", {}, h("h1", {}, "Unreel")),
    h("main", { class: "stack" }, h(Find, { onTask: tasks.add }), h(TaskList, { tasks })),
    h(Footer, {}),
  );
}
