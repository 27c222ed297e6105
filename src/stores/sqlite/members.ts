import { changeEvent, deletedEvent, type TaskEvent } from "../../feed/task-events.ts";
import { isActive, type Task } from "../../model/task.ts";
import type { DamageReport } from "../documents.ts";
import {
  growDocument,
  type GrowthStep,
  parseHeld,
  type TaskWrite,
  updateDocument,
  followMembers,
} from "../task-writes.ts";
import {
  ChangesByCollection,
  growthAfter,
  growthAfterRetry,
  maxPlaces,
  newMembers,
  isRetried,
  retryChange,
  stepBytes,
  type StateChange,
} from "../member-rules.ts";
import type { Grown, Growing } from "../store-types.ts";
import { atOnce, never } from "./statements.ts";
import type { Tables } from "./tables.ts";
import type { TaskRow } from "./task-table.ts";

interface MemberDeps {
  damage: Pick<DamageReport, "unlessDamaged">;
  now: () => Date;
}

/** Creates the changes of collections and members. Each returns the events of what it has changed. */
export function createMembers(tables: Tables, { collect, followAll }: Followers, { damage, now }: MemberDeps) {
  const growRow = (row: TaskRow, before: Task, step: GrowthStep) =>
    writeGrowth(tables, row, growDocument(row, before, step, now()), step.growth);

  return {
    /** `isCut`: the records of members that were found are long, so a further call adds more. */
    grow(id: string, growing: Growing): { result: Grown & { isCut: boolean }; events: TaskEvent[] } {
      const row = tables.require(id);
      const before = parseHeld(row, growing.lease);
      const { isReusing, warnings } = growing;
      const members = newMembers(before, growing);
      const changes = new ChangesByCollection();
      const events: TaskEvent[] = [];
      let free = tables.tasks.freeInQueue(row.owner);
      let [added, bytes, isCut] = [0, 0, false];
      for (const { index, task } of members) {
        const found = isReusing ? tables.findReusable(task, maxPlaces) : undefined;
        isCut = bytes >= stepBytes;
        if (isCut || (found === undefined && free <= 0)) break;
        const document = JSON.stringify(task);
        const seq = found?.seq ?? tables.insert(task, document);
        if (found === undefined) events.push(changeEvent(task, document));
        if (found === undefined) free -= 1;
        bytes += found?.document.length ?? 0;
        tables.addPlace(row.seq, index, seq);
        changes.add(row.seq, { before: undefined, after: found?.state ?? task.state }, 1);
        added += 1;
      }
      const growth = growthAfter(before, { ...growing, members }, added);
      const { task, event } = growRow(row, before, { changes: changes.take(row.seq), growth, warnings });
      return { result: { task, isWhole: added === members.length, isCut }, events: [...events, event] };
    },

    retry(id: string, lease: string): { result: Grown; events: TaskEvent[] } {
      const row = tables.require(id);
      const before = parseHeld(row, lease);
      const ended = tables.ended(row.seq, before.growth?.retried ?? 0);
      const changes = new ChangesByCollection();
      const events: TaskEvent[] = [];
      let last: number | undefined;
      let free = tables.tasks.freeInQueue(row.owner);
      for (const { index, task } of ended) {
        const member = tables.find(task);
        const isEnded = member !== undefined && isRetried(member.state);
        if (isEnded && free <= 0) break;
        last = index;
        const written = isEnded && damage.unlessDamaged(member, () => updateDocument(member, retryChange, {}, now()));
        if (!isEnded || !written) continue;
        free -= 1;
        collect(changes, member, { before: member.state, after: "queued" }, row.seq);
        tables.write(member, written, atOnce);
        events.push(written.event);
      }
      const isWhole = ended.length === 0 || last === ended.at(-1)?.index;
      const left = growthAfterRetry(before, ended, last);
      const { task, event } = growRow(row, before, { changes: changes.take(row.seq), growth: left });
      return { result: { task, isWhole }, events: [...events, event, ...followAll(changes)] };
    },
  };
}

function writeGrowth(tables: Tables, row: TaskRow, written: TaskWrite, growth: GrowthStep["growth"]): TaskWrite {
  tables.write(row, written, growth === null ? never : undefined);
  return written;
}

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
    const { places, last } = tables.endings.cancelable(collection, after);
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
    return { last, events: [...events, ...followAll(changes)] };
  }

  function endMembers(collection: number, after: number): EndedMembers {
    const row = tables.find(collection);
    if (row === undefined) return removeMembers(tables, collection, after);
    // It may have been queued again meanwhile.
    return row.state === "canceled" ? cancelMembers(collection, after) : { events: [] };
  }

  return {
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

/** Removes members that the collection alone has; the others leave it. */
function removeMembers(tables: Tables, collection: number, after: number): EndedMembers {
  const events: TaskEvent[] = [];
  const { places, last } = tables.endings.membersAfter(collection, after);
  for (const place of places) {
    if (place.isOwn === 0) tables.removePlace(collection, place);
    const member = place.isOwn === 0 ? undefined : tables.find(place.seq);
    // One that comes again is removed already.
    if (member === undefined) continue;
    tables.removePlacesOf(member.seq);
    tables.tasks.remove(member);
    events.push(deletedEvent(member.id, member.owner));
  }
  return { last, events };
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
