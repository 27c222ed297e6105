import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { nullable } from "../model/schema.ts";
import { Task } from "../model/task.ts";

const Page = Type.Object({ tasks: Type.Array(Task), next: nullable(Type.String()) });
export type Page = Static<typeof Page>;

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
export const parseTask = (json: string) => parse(taskCheck, json);
export const parseChanged = (json: string) => parse(changedCheck, json);
export const parsePage = (json: string | undefined) => parse(pageCheck, json ?? "");
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
