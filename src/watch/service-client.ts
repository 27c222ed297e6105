import { expectOk } from "../feed/feed-client.ts";
import { Task } from "../model/task.ts";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { nullable } from "../model/schema.ts";

const responseTimeoutMs = 10_000;

interface ServiceOptions {
  /** Base URL, with a slash at the end. */
  url: URL;
  /** Sent with each request. */
  headers: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

export type ServiceClient = ReturnType<typeof openService>;

/** Opens the endpoints that the view reads. Every promise rejects with an `Error` that says why. */
export function openService({ url: base, headers, signal }: ServiceOptions) {
  async function getJson(path: string): Promise<string | undefined> {
    const response = await fetch(new URL(path, base), {
      headers: { ...headers, accept: "application/json" },
      signal: AbortSignal.any([signal, AbortSignal.timeout(responseTimeoutMs)]),
    });
    const text = await response.text();
    if (response.status === 404) return undefined;
    expectOk(response, "application/json");
    return text;
  }

  return {
    async listRunning(): Promise<Task[]> {
      const tasks: Task[] = [];
      let query: string | undefined = "?state=running&limit=200";
      while (query !== undefined) {
        const page: Page = parsePage(await getJson(`tasks/${query}`));
        tasks.push(...page.tasks);
        query = page.next === null ? undefined : new URL(page.next, base).search;
      }
      return tasks;
    },

    /** Returns `undefined` if the task does not exist. */
    async getTask(id: string): Promise<Task | undefined> {
      const text = await getJson(`tasks/${encodeURIComponent(id)}`);
      return text === undefined ? undefined : parseTask(text);
    },
  };
}

const Page = Type.Object({ tasks: Type.Array(Task), next: nullable(Type.String()) });
type Page = Static<typeof Page>;

/** A task as an event has it: without `info` if that is as in the task's previous event. */
const ChangedTask = Type.Object({
  ...Task.properties,
  info: Type.Optional(Task.properties.info),
});
export type ChangedTask = Static<typeof ChangedTask>;

const taskCheck = TypeCompiler.Compile(Task);
const changedCheck = TypeCompiler.Compile(ChangedTask);
const pageCheck = TypeCompiler.Compile(Page);
const deletedCheck = TypeCompiler.Compile(Type.Pick(Task, ["id"]));

/** A change of a task, read from `/tasks/events`, with all that is known of the task. */
export type WatchedChange = { type: "task"; task: Task } | { type: "deleted"; task: Pick<Task, "id"> };

/** These throw an `Error` if `json` is not such a response of this service. */
const parseTask = (json: string) => parse(taskCheck, json);
export const parseChanged = (json: string) => parse(changedCheck, json);
const parsePage = (json: string | undefined) => parse(pageCheck, json ?? "");
export const parseDeleted = (json: string) => parse(deletedCheck, json);

function parse<T extends TSchema>(check: TypeCheck<T>, json: string): Static<T> {
  try {
    const value: unknown = JSON.parse(json);
    if (check.Check(value)) return value;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
  }
  throw new Error("unexpected response from the service");
}
