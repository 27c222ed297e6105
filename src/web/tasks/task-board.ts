import { type Signal, useSignal } from "@preact/signals";
import { h, type ComponentChild, type RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { State } from "../../model/task.ts";
import { AskDialog, createTaskActions, type ManyAction, type TaskActions } from "./task-actions.ts";
import { Button } from "../elements.ts";
import { Members } from "./members.ts";
import { TaskRow } from "./task-row.ts";
import { describeTransition, stateNames } from "./task-texts.ts";
import type { Tasks } from "./tasks.ts";
import { formatSpeed } from "../texts.ts";

interface BoardProps {
  tasks: Tasks;
  actions: TaskActions;
}

export interface TaskBoardProps {
  tasks: Tasks;
  /** Shown when there are no tasks at all. */
  nothingYet: ComponentChild;
}

/** The tasks with all that can be done with them. The page loads it when there is one. */
export function TaskBoard({ tasks, nothingYet }: TaskBoardProps): ComponentChild {
  const actions = useMemo(() => createTaskActions(tasks), [tasks]);
  const list = useRef<HTMLUListElement>(null);
  useEffect(
    () => (list.current === null ? undefined : keepFocus(list.current, document.querySelector("#downloads"))),
    [],
  );
  return h(
    "div",
    { class: "stack" },
    h(Toolbar, { tasks, actions }),
    h(Failure, { actions }),
    h("ul", { class: "stack", ref: list }, h(Rows, { tasks, actions })),
    tasks.shown.value.length === 0 &&
      tasks.isRead.value &&
      (tasks.filter.value === undefined ? nothingYet : h("p", { class: "muted" }, "No downloads in this state.")),
    h(Older, { tasks, actions, list }),
    h(Spoken, { tasks }),
    h(AskDialog, actions),
  );
}

/** A button that reads older tasks. The focus goes on at the first of them, as the button is far below then, or gone. */
function Older({ tasks, actions, list }: BoardProps & { list: RefObject<HTMLUListElement | null> }): ComponentChild {
  const button = useRef<HTMLButtonElement>(null);
  const lastRow = useRef<Element | null>(null);
  useLayoutEffect(() => {
    const next = lastRow.current?.nextElementSibling;
    if (next == null) return;
    lastRow.current = null;
    if ([button.current, document.body].includes(document.activeElement as HTMLElement))
      next.querySelector<HTMLElement>("[tabindex='-1']")?.focus();
  }, [tasks.shown.value]);
  const onClick = (): void => {
    lastRow.current = list.current?.lastElementChild ?? null;
    void actions.attempt(tasks.readOlder);
  };
  return tasks.hasOlder.value && h("button", { ref: button, onClick }, "Older");
}

/** One for each task; the progress of a task renders its row alone. */
function Rows({ tasks, actions }: BoardProps): ComponentChild {
  const { onAction, onSelect, selected } = actions;
  return tasks.shown.value.map((task) =>
    h(
      "li",
      { key: task.peek().id },
      h(TaskRow, { task, selected, onSelect, onAction: (...wish) => void onAction(...wish) }),
      h(Members, { task, tasks, onAction: (...wish) => void onAction(...wish) }),
    ),
  );
}

/** Says how the tasks are, but not how far, as soon as a screen reader has time. */
function Spoken({ tasks }: Pick<BoardProps, "tasks">): ComponentChild {
  const text = useSignal("");
  useEffect(() => {
    const say = gatherSentences(text);
    return tasks.onTransition((task) => say(describeTransition(task)));
  }, [tasks, text]);
  return h("p", { class: "spoken", role: "status" }, text.value);
}

/** Long enough to gather what happens at once. */
const gatherMs = 500;

/** More of them than can be listened to are counted. */
const maxSentences = 3;

/** Returns a function that adds a sentence to what `text` will be. */
function gatherSentences(text: Signal<string>): (sentence: string) => void {
  const sentences: string[] = [];
  return (sentence) => {
    if (sentences.push(sentence) > 1) return;
    setTimeout(() => {
      const said = sentences.splice(0);
      text.value = said.length > maxSentences ? `${said.length} downloads have changed.` : said.join(" ");
    }, gatherMs);
  };
}

function Failure({ actions }: Pick<BoardProps, "actions">): ComponentChild {
  return h("p", { class: "failure task-failure", role: "alert" }, actions.failure.value);
}

function Toolbar({ tasks, actions }: BoardProps): ComponentChild {
  const ids = actions.selected.value;
  const onSelect = () => actions.select(ids === undefined ? [] : undefined);
  return h(
    "div",
    { class: "row", role: "group", "aria-label": "List" },
    h(Filter, { tasks, actions }),
    h("button", { class: ids && "primary", "aria-pressed": ids !== undefined, onClick: onSelect }, "Select"),
    ids === undefined
      ? h(Button, { isDisabled: !tasks.hasCancelable.value, onClick: () => void actions.cancelAll() }, "Cancel all")
      : h(Selection, { tasks, actions }),
    h(Running, { tasks }),
  );
}

/** Its space stays when nothing runs, so that nothing moves. */
function Running({ tasks }: Pick<BoardProps, "tasks">): ComponentChild {
  const { count, speed } = tasks.running.value;
  const parts = [...(count > 0 ? [`${count} running`] : []), ...(speed > 0 ? [formatSpeed(speed)] : [])];
  return h("p", { class: "task-running muted" }, parts.join(" · "));
}

function Filter({ tasks, actions }: BoardProps): ComponentChild {
  const onChange = ({ currentTarget }: { currentTarget: HTMLSelectElement }) => {
    const state = currentTarget.value === "" ? undefined : (currentTarget.value as State);
    void actions.attempt(() => tasks.setFilter(state));
  };
  return h(
    "label",
    { class: "row" },
    "Show",
    h(
      "select",
      { class: "task-filter", onChange, value: tasks.filter.value ?? "" },
      h("option", { value: "" }, "All"),
      Object.entries(stateNames).map(([state, name]) => h("option", { key: state, value: state }, name)),
    ),
  );
}

function Selection({ tasks, actions }: BoardProps): ComponentChild {
  const ids = actions.selected.value;
  const count = tasks.shown.value.filter((task) => ids?.has(task.peek().id)).length;
  const selectAll = () => actions.select(tasks.shown.peek().map((task) => task.peek().id));
  const act = (action: ManyAction, label: string) =>
    h(Button, { isDisabled: count === 0, onClick: () => void actions.actOnSelected(action) }, label);
  return [
    h("button", { onClick: selectAll }, "Select all"),
    act("cancel", "Cancel selected"),
    act("retry", "Retry selected"),
    act("delete", "Delete selected"),
    h("span", { class: "muted" }, `${count} selected`),
  ];
}

/**
 * Keeps the focus near when the element that has it is removed: on its row if that stays, else on the row that is
 * there now, else on `rest`. Rows are the children of `list`; each holds an element with a `tabindex`
 * of -1. Returns the function that ends this.
 */
function keepFocus(list: HTMLElement, rest: HTMLElement | null): () => void {
  let focused: { element: Element; row: Element; index: number } | undefined;

  function onFocus({ target }: FocusEvent): void {
    const rows = [...list.children];
    const index = rows.findIndex((row) => row.contains(target as Node));
    const row = rows[index];
    focused = row && { element: target as Element, row, index };
  }

  function onRemoval(): void {
    if (focused === undefined || focused.element.isConnected) return;
    const { row, index } = focused;
    focused = undefined;
    // A user who is elsewhere meanwhile stays there.
    if (document.activeElement !== document.body) return;
    const near = row.isConnected ? row : (list.children[index] ?? list.lastElementChild);
    (near?.querySelector<HTMLElement>("[tabindex='-1']") ?? rest)?.focus({ preventScroll: true });
  }

  const observer = new MutationObserver(onRemoval);
  observer.observe(list, { childList: true, subtree: true });
  document.addEventListener("focusin", onFocus);
  return () => {
    observer.disconnect();
    document.removeEventListener("focusin", onFocus);
  };
}
