import { deletedEvent, type TaskEvent } from "../../feed/task-events.ts";
import { isActive } from "../../model/task.ts";
import { ChangesByCollection, membersAtOnce } from "../member-rules.ts";
import { updateDocument } from "../task-writes.ts";
import type { Followers, MemberDeps } from "./followers.ts";
import { never } from "./statements.ts";
import type { Tables } from "./tables.ts";
import type { TaskRow } from "./task-table.ts";

export type MemberEnds = ReturnType<typeof createMemberEnds>;

interface EndedMembers {
  /** The place of the last member that was looked at; undefined: there are none after it. */
  last?: number | undefined;
  events: TaskEvent[];
}

/** Creates what ends tasks with their places, and collections with their members. Each returns the events of what it has changed. */
export function createMemberEnds(
  tables: Tables,
  { collect, follow, followAll }: Followers,
  { damage, now }: MemberDeps,
) {
  function cancelMembers(collection: number, after: number): EndedMembers {
    const changes = new ChangesByCollection();
    const events: TaskEvent[] = [];
    const places = tables.endings.cancelable(collection, after);
    for (const { seq } of places) {
      const member = tables.find(seq);
      // One that comes again is canceled already.
      if (member === undefined || !isActive(member.state)) continue;
      const written = damage.unlessDamaged(member, () => updateDocument(member, { state: "canceled" }, {}, now()));
      if (written === undefined) continue;
      collect(changes, member, { before: member.state, after: "canceled" }, collection);
      tables.write(member, written, never);
      events.push(written.event);
    }
    return { last: lastOf(places), events: [...events, ...followAll(changes)] };
  }

  /** Removes members that the collection alone has; the others leave it. */
  function removeMembers(collection: number, after: number): EndedMembers {
    const events: TaskEvent[] = [];
    const places = tables.endings.membersAfter(collection, after);
    for (const place of places) {
      if (place.isOwn === 0) tables.removePlace(collection, place);
      const member = place.isOwn === 0 ? undefined : tables.find(place.seq);
      // One that comes again is removed already.
      if (member === undefined) continue;
      tables.removePlacesOf(member.seq);
      tables.tasks.remove(member);
      events.push(deletedEvent(member.id, member.owner));
    }
    return { last: lastOf(places), events };
  }

  function endMembers(collection: number, after: number): EndedMembers {
    const row = tables.find(collection);
    if (row === undefined) return removeMembers(collection, after);
    // It may have been queued again meanwhile.
    return row.state === "canceled" ? cancelMembers(collection, after) : { events: [] };
  }

  return {
    /** Removes a task with its places. */
    remove(row: TaskRow): TaskEvent[] {
      const followed = follow(row, { before: row.state, after: undefined });
      if (row.memberships > 0) tables.removePlacesOf(row.seq);
      tables.tasks.remove(row);
      return [deletedEvent(row.id, row.owner), ...followed];
    },

    /**
     * Cancels the next members of a collection that is canceled, or removes those of one that is removed. `isWhole`: there are
     * no more; until then the collection is among `tables.endings.all()`.
     *
     * @param after The place of the last member that has ended; default: as the call before has left it.
     */
    endNext(
      collection: number,
      after = tables.endings.placeOf(collection),
    ): { result: { isWhole: boolean }; events: TaskEvent[] } {
      const { last, events } = endMembers(collection, after ?? 0);
      if (last !== after) tables.endings.keep(collection, last);
      return { result: { isWhole: last === undefined }, events };
    },
  };
}

/** Returns the place of the last of the members that were read at once; undefined: there are none after it. */
function lastOf(places: readonly { place: number }[]): number | undefined {
  return places.length < membersAtOnce ? undefined : places.at(-1)?.place;
}
