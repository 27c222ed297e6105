import { h, render } from "preact";
import { App } from "./app.ts";
import { createTasks } from "./tasks/tasks.ts";

render(h(App, { tasks: createTasks(new URL(document.baseURI)) }), document.body);
