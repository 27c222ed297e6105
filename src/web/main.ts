import { type ComponentChild, h, render } from "preact";
import { Find } from "./find/find.ts";
import { hasSession, Session, SignIn } from "./session.ts";
import { TaskList } from "./tasks/task-list.ts";
import { createTaskView, type Tasks } from "./tasks/tasks.ts";

render(h(App, { tasks: createTaskView(new URL(document.baseURI)) }), document.body);

/** The whole page; while the service needs a key, only the form for it. */
function App({ tasks }: { tasks: Tasks }): ComponentChild {
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
    h("main", { class: "stack" }, isLocked ? h(SignIn, {}) : [h(Find, { onTask: tasks.add }), h(TaskList, { tasks })]),
  );
}

/** How pages get here from elsewhere, and where programs go. */
function WaysHere(): ComponentChild {
  return h(
    "nav",
    { class: "row" },
    // A popover closes with Escape and by a click beside it, and returns the focus.
    h("button", { popovertarget: "ways" }, "Add to browser"),
    h(
      "dialog",
      { id: "ways", popover: "auto", class: "card", "aria-label": "Add to browser" },
      h(
        "div",
        { class: "stack" },
        h("p", {}, "Drag this link to your bookmarks. On any page, click it there to open that page in Unreel."),
        h("p", {}, h("a", { class: "button", href: bookmarklet(), onClick: stay }, "Open in Unreel")),
        h("p", {}, "In Chrome on Android, over HTTPS, install this page as an app, to share pages to it."),
      ),
    ),
    h("a", { class: "button", href: "docs" }, "API"),
  );
}

/** A script for other pages; the policy of this one does not let it run here. */
function bookmarklet(): string {
  const target = JSON.stringify(`${new URL("./", document.baseURI).href}?url=`);
  return `javascript:void open(${target}+encodeURIComponent(location.href))`;
}

function stay(event: Event): void {
  event.preventDefault();
}
