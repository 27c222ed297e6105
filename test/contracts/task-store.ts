import { describe } from "vitest";
import { describeClaims } from "./task-store/claims.ts";
import { describeClosing } from "./task-store/closing.ts";
import { describeCopies } from "./task-store/copies.ts";
import { describeDeaths } from "./task-store/stalled.ts";
import { describeIdempotency } from "./task-store/idempotency.ts";
import { describeLeases } from "./task-store/leases.ts";
import { describeMoves } from "./task-store/transitions.ts";
import { describePages } from "./task-store/pages.ts";
import { describeRecords } from "./task-store/records.ts";
import { describeRoom } from "./task-store/queue-limit.ts";
import type { OpenStore } from "./task-store/harness.ts";

/** The contract of `src/stores/store.ts`; `open` gives an empty store that goes by `now`. */
export function describeTaskStore(name: string, open: OpenStore): void {
  describe(`${name}, as any task store,`, () => {
    describeRecords(open);
    describeCopies(open);
    describeMoves(open);
    describePages(open);
    describeClaims(open);
    describeLeases(open);
    describeDeaths(open);
    describeRoom(open);
    describeIdempotency(open);
    describeClosing(open);
  });
}
