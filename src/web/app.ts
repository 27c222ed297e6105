import { h, type ComponentChild } from "preact";
import { Find } from "./find.ts";

/** The whole page. */
export function App(): ComponentChild {
  return h(
    "div",
    { class: "page" },
    h("header", {}, h("h1", {}, "Unreel")),
    h("main", {}, h(Find, { onTask: () => {} })),
  );
}
