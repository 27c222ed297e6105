import { changeEvent, type TaskEvent } from "../../feed/task-events.ts";
import type { Task } from "../../model/task.ts";
import { growDocument, type GrowthStep, parseHeld, type TaskWrite, updateDocument } from "../task-writes.ts";
import {
  ChangesByCollection,
  growthAfter,
  growthAfterRetry,
  maxPlaces,
  newMembers,
  membersAtOnce,
  isRetried,
  retryChange,
} from "../member-rules.ts";
import type { Grown, Growing } from "../store-types.ts";
import type { Followers, MemberDeps } from "./followers.ts";
import { atOnce, never } from "./statements.ts";
import type { Tables } from "./tables.ts";
import type { TaskRow } from "./task-table.ts";

export type Members = ReturnType<typeof createMembers>;

/** Creates the changes of collections and members. Each returns the events of what it has changed. */
export function createMembers(tables: Tables, { collect, followAll }: Followers, { damage, now }: MemberDeps) {
  function growRow(row: TaskRow, before: Task, step: GrowthStep): TaskWrite {
    const written = growDocument(row, before, step, now());
    tables.write(row, written, step.growth === null ? never : undefined);
    return written;
  }

  return {
    grow(id: string, growing: Growing): { result: Grown; events: TaskEvent[] } {
      const row = tables.require(id);
      const before = parseHeld(row, growing.lease);
      const { isReusing, warnings } = growing;
      const members = newMembers(before, growing);
      const changes = new ChangesByCollection();
      const events: TaskEvent[] = [];
      let free = tables.tasks.freeInQueue(row.owner);
      let added = 0;
      for (const { index, task } of members) {
        const found = isReusing ? tables.findReusable(task, maxPlaces) : undefined;
        if (found === undefined && free <= 0) break;
        const document = JSON.stringify(task);
        const seq = found?.seq ?? tables.insert(task, document);
        if (found === undefined) events.push(changeEvent(task, document));
        if (found === undefined) free -= 1;
        tables.addPlace(row.seq, index, seq);
        changes.add(row.seq, { before: undefined, after: found?.state ?? task.state }, 1);
        added += 1;
      }
      const growth = growthAfter(before, { ...growing, members }, added);
      const { task, event } = growRow(row, before, { changes: changes.take(row.seq), growth, warnings });
      return { result: { task, isWhole: added === members.length }, events: [...events, event] };
    },

    retry(id: string, lease: string): { result: Grown; events: TaskEvent[] } {
      const row = tables.require(id);
      const before = parseHeld(row, lease);
      const ended = tables.ended(row.seq, before.growth?.retried ?? 0, membersAtOnce);
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
      const left = growthAfterRetry(before, ended.length === 0 ? undefined : (last ?? before.growth?.retried));
      const { task, event } = growRow(row, before, { changes: changes.take(row.seq), growth: left });
      return { result: { task, isWhole }, events: [...events, event, ...followAll(changes)] };
    },
  };
}
