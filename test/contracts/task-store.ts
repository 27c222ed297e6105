import { describe } from "vitest";
import { describeClaims } from "./task-store/claims.ts";
import { describeClock } from "./task-store/clock.ts";
import { describeCounts } from "./task-store/counts.ts";
import { describeClosing } from "./task-store/closing.ts";
import { describeCollectionEnds } from "./task-store/collection-ends.ts";
import { describeCollections } from "./task-store/collections.ts";
import { describeCopies } from "./task-store/copies.ts";
import { describeDamage } from "./task-store/damage.ts";
import { describeEvents } from "./task-store/events.ts";
import { describeStalled } from "./task-store/stalled.ts";
import { describeKeys } from "./task-store/keys.ts";
import { describeOwners } from "./task-store/owners.ts";
import { describeOutbox } from "./task-store/outbox.ts";
import { describeStoredFiles } from "./task-store/files.ts";
import { describeIdempotency } from "./task-store/idempotency.ts";
import { describeLeases } from "./task-store/leases.ts";
import { describeTransitions } from "./task-store/transitions.ts";
import { describePages } from "./task-store/pages.ts";
import { describeRecords } from "./task-store/records.ts";
import { describeQuotas } from "./task-store/quotas.ts";
import { describeReuse } from "./task-store/reuse.ts";
import { describeSizes } from "./task-store/sizes.ts";
import { describeTurns } from "./task-store/turns.ts";
import { describeQueueLimit } from "./task-store/queue-limit.ts";
import type { OpenStore } from "./task-store/harness.ts";

/** The contract of `src/stores/store.ts`; `open` opens an empty store with the clock `now`. */
export function describeTaskStore(name: string, open: OpenStore): void {
  describe(`${name}, as any task store,`, () => {
    describeRecords(open);
    describeCopies(open);
    describeTransitions(open);
    describePages(open);
    describeSizes(open);
    describeClaims(open);
    describeLeases(open);
    describeStalled(open);
    describeClock(open);
    describeQueueLimit(open);
    describeCounts(open);
    describeIdempotency(open);
    describeEvents(open);
    describeOwners(open);
    describeTurns(open);
    describeQuotas(open);
    describeStoredFiles(open);
    describeKeys(open);
    describeOutbox(open);
    describeDamage(open);
    describeCollections(open);
    describeCollectionEnds(open);
    describeReuse(open);
    describeClosing(open);
  });
}
