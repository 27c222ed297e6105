import { type ReadonlySignal, signal } from "@preact/signals";
import { type ComponentChild, h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { State, Task } from "../../model/task.ts";
import type { RowAction } from "./task-controls.ts";
import { createTask, failureOf, type TaskAction } from "../api.ts";
import { clampTitle, taskTitle } from "./task-texts.ts";
import type { Tasks } from "./tasks.ts";
import { describeFailure } from "../texts.ts";

export type TaskActions = ReturnType<typeof createTaskActions>;

/** Requests at a time: browsers open six connections, one of which is the event stream's. */
const concurrency = 4;

/** Creates the actions on tasks: each asks before a file is lost, and says what failed. */
export function createTaskActions(tasks: Tasks) {
  const asker = createAsker();
  const selected = signal<ReadonlySet<string>>();
  const failure = signal<string>();
  const busy = new Set<string>();

  /** Runs `job`; if it fails, `failure` says so. */
  async function attempt(job: () => Promise<void>, about = ""): Promise<void> {
    failure.value = undefined;
    const error = await failureOf(job);
    if (error !== undefined) failure.value = `${about}${describeFailure(error)}`;
  }

  /** Returns false if there is none, or the answer is no. */
  async function actOnMany(targets: readonly Task[], action: ManyAction) {
    const isYes = targets.length > 0 && (action === "retry" || (await asker.ask(questionOf(targets, action))));
    if (isYes) await actOnAll(tasks, targets, action);
    return isYes;
  }

  async function actOnOne(task: Task, action: RowAction): Promise<void> {
    const { id, url, options } = task;
    if (action === "again") return tasks.add(await createTask(url, options));
    if (isAskedBefore(action, task) && !(await asker.ask(questionOf([task], action)))) return undefined;
    return tasks.act(id, action);
  }

  return {
    asker,
    /** The ids of the chosen tasks; undefined: none can be chosen now. */
    selected: selected as ReadonlySignal<ReadonlySet<string> | undefined>,
    /** Why the last action failed; undefined: it did not. */
    failure: failure as ReadonlySignal<string | undefined>,
    attempt,
    async onAction(task: Task, action: RowAction): Promise<void> {
      if (busy.has(task.id)) return;
      busy.add(task.id);
      const about = `${clampTitle(taskTitle(task))}: `;
      await attempt(() => actOnOne(task, action), about).finally(() => busy.delete(task.id));
    },
    /** Cancels all tasks that wait or run, those that are not listed too. */
    cancelAll: () => attempt(async () => void (await actOnMany(await tasks.readAll(cancelable), "cancel"))),
    select: (ids: Iterable<string> | undefined) => void (selected.value = ids === undefined ? undefined : new Set(ids)),
    onSelect(id: string, isSelected: boolean): void {
      const others = [...(selected.peek() ?? [])].filter((each) => each !== id);
      selected.value = new Set(isSelected ? [...others, id] : others);
    },
    actOnSelected: (action: ManyAction) =>
      attempt(async () => {
        const shown = tasks.shown.peek().map((task) => task.peek());
        const chosen = shown.filter((task) => selected.peek()?.has(task.id) === true && isFit[action](task));
        if (await actOnMany(chosen, action)) selected.value = new Set();
      }),
  };
}

/** Some of them may have ended or gone in the meantime. */
async function actOnAll(tasks: Tasks, targets: readonly Task[], action: TaskAction): Promise<void> {
  const rest = [...targets];
  const work = async () => {
    for (let task = rest.shift(); task !== undefined; task = rest.shift()) {
      const { id } = task;
      const error = await failureOf(() => tasks.act(id, action));
      if (error !== undefined && ![404, 409].includes(error.status)) throw error;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

/** Whether it loses a file, or what was made of a whole list. */
function isAskedBefore(action: RowAction, { file, kind }: Task): action is "cancel" | "delete" | "delete-file" {
  if (kind === "collection") return action === "delete" || action === "cancel";
  return file !== null && (action === "delete" || action === "delete-file");
}

const cancelable: readonly State[] = ["queued", "running"];

/** What can be done with several tasks at once. */
export type ManyAction = "cancel" | "retry" | "delete";

const isFit: Record<ManyAction, (task: Task) => boolean> = {
  cancel: ({ state }) => cancelable.includes(state),
  retry: mayRetry,
  delete: () => true,
};

/** Whether a retry of the task makes sense: what is a list stays one. */
export function mayRetry({ state, error }: Task): boolean {
  return (state === "failed" || state === "canceled") && error?.code !== "playlist";
}

function questionOf(targets: readonly Task[], action: "cancel" | "delete" | "delete-file") {
  const [first] = targets;
  const isOne = first !== undefined && targets.length === 1;
  const what = isOne ? `“${clampTitle(taskTitle(first))}”` : `${targets.length} downloads`;
  if (action === "cancel") return { text: `Cancel ${what}?`, yes: isOne ? "Cancel download" : "Cancel downloads" };
  if (action === "delete-file")
    return { text: `Delete the file of ${what}? The download stays listed.`, yes: "Delete file" };
  if (isOne && first.kind === "collection") return { text: `Delete ${what} and its downloads?`, yes: "Delete" };
  const files = targets.filter(({ file }) => file !== null).length;
  const which = isOne ? "its file" : files === 1 ? "a file" : `${files} files`;
  return { text: `Delete ${what}${files === 0 ? "" : ` and ${which}`}?`, yes: "Delete" };
}

interface Question {
  text: string;
  /** The label of the button that means yes. */
  yes: string;
}

/** Asks one question at a time, in a dialog in front of the page. */
function createAsker() {
  const asked = signal<Question>();
  let resolve = (_isYes: boolean): void => {};
  const answer = (isYes: boolean): void => {
    asked.value = undefined;
    resolve(isYes);
  };
  return {
    /** Resolves with whether the answer is yes. */
    ask(question: Question): Promise<boolean> {
      answer(false);
      const answered = Promise.withResolvers<boolean>();
      resolve = answered.resolve;
      asked.value = question;
      return answered.promise;
    },
    asked,
    answer,
  };
}

/** The dialog of an asker: the safe answer has the focus, and Escape gives it. */
export function AskDialog({ asker }: Pick<TaskActions, "asker">): ComponentChild {
  const question = asker.asked.value;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (question !== undefined) dialog.current?.showModal();
  }, [question]);
  if (question === undefined) return null;
  return h(
    "dialog",
    {
      class: "card",
      "aria-labelledby": "question",
      ref: dialog,
      onClose: () => asker.answer(dialog.current?.returnValue === "yes"),
    },
    h(
      "form",
      { class: "stack", method: "dialog" },
      h("p", { id: "question" }, question.text),
      h(
        "div",
        { class: "row" },
        h("button", { value: "no" }, "No"),
        h("button", { value: "yes", class: "danger" }, question.yes),
      ),
    ),
  );
}
