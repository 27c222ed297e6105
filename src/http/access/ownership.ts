import { Type } from "@sinclair/typebox";
import type { AccessKey } from "../../model/access-key.ts";
import { ServiceError } from "../../model/errors.ts";
import { damagedAs, taskNotFoundError } from "../../stores/rules.ts";
import type { TaskStore } from "../../stores/store.ts";
import type { Task } from "../../model/task.ts";

/** `owner` in a query. */
export const OwnerQuery = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 64,
    description: "only tasks of the key with this name; for admins",
  }),
);

type Caller = AccessKey | null;

/** Returns the owner whose tasks alone the caller may see; undefined: it may see all. */
function visibleOwner(caller: Caller): string | undefined {
  return caller === null || caller.admin ? undefined : caller.name;
}

/**
 * Returns the owner whose tasks the caller gets if it asks for those of `asked`; undefined: of all owners.
 *
 * @throws ServiceError `forbidden` if it may not see them.
 */
export function ownerFilter(caller: Caller, asked: string | undefined): string | undefined {
  const visible = visibleOwner(caller);
  if (visible === undefined || asked === undefined || asked === visible) return visible ?? asked;
  throw new ServiceError("forbidden", `only an admin's key may see the tasks of other owners`);
}

/**
 * Returns the task of a request for one task.
 *
 * @throws ServiceError `not_found` if there is none that the caller may see; DamagedTaskError if it sees all tasks: a damaged record does not
 * say whose it is
 */
export async function requireTask(
  store: TaskStore,
  { params: { id }, caller }: { params: { id: string }; caller: Caller },
): Promise<Task> {
  const owner = visibleOwner(caller);
  const reading = store.get(id);
  const task = await (owner === undefined ? reading : reading.catch(damagedAs(undefined)));
  if (task === undefined || (owner ?? task.owner) !== task.owner) throw taskNotFoundError(id);
  return task;
}

/** @throws ServiceError `not_found` if the caller may see only the tasks of one owner, and not this one. */
export async function assertVisible(store: TaskStore, id: string, caller: Caller): Promise<void> {
  if (visibleOwner(caller) !== undefined) await requireTask(store, { params: { id }, caller });
}
