import type { TaskEvent } from "../../feed/task-events.ts";
import type { DamageReport } from "../documents.ts";
import { ChangesByCollection, type StateChange } from "../member-rules.ts";
import { followMembers } from "../task-writes.ts";
import type { Tables } from "./tables.ts";
import type { TaskRow } from "./task-table.ts";

export interface MemberDeps {
  damage: Pick<DamageReport, "unlessDamaged">;
  now: () => Date;
}

export type Followers = ReturnType<typeof createFollowers>;

/** Creates what makes collections follow changes of their members. */
export function createFollowers(tables: Tables, { damage, now }: MemberDeps) {
  /** @param collection One that the task is in: most are in no other. */
  function collect(changes: ChangesByCollection, row: TaskRow, change: StateChange, collection?: number): void {
    if (row.memberships === 0) return;
    if (row.memberships === 1 && collection !== undefined) return changes.add(collection, change, 1);
    for (const place of tables.placesOf(row.seq)) changes.add(place.collection, change, place.places);
  }

  /** Writes the changes that were collected; returns the events. */
  function followAll(changes: ChangesByCollection): TaskEvent[] {
    return changes.keys().flatMap((seq) => {
      const row = tables.find(seq);
      const written = row && damage.unlessDamaged(row, () => followMembers(row, changes.take(seq), now()));
      if (row === undefined || written === undefined) return [];
      tables.write(row, written);
      return [written.event];
    });
  }

  return {
    collect,
    followAll,
    /** Has the collections follow a change of a member; call it while the task still is one. */
    follow(row: TaskRow, change: StateChange): TaskEvent[] {
      if (row.memberships === 0 || change.before === change.after) return [];
      const changes = new ChangesByCollection();
      collect(changes, row, change);
      return followAll(changes);
    },
  };
}
