import type { TaskEvents } from "../task-events.ts";
import type { State, Task } from "../task.ts";
import type { TaskChange } from "../task-changes.ts";

/**
 * Contract of a task store. It can be implemented from this text alone; the suite in
 * `test/contracts/task-store.ts` holds every implementation to it.
 *
 * - **Order.** Each task gets a sequence number (`seq`, a positive safe integer) in the order in
 *   which `create` was acknowledged, never used twice. Ids are not ordered within a millisecond, so
 *   pages and claims go by `seq`.
 * - **Atomicity.** Every method takes effect wholly or not at all, also when the process dies in the
 *   middle; concurrent calls act as if one came after the other. When the promise of a writing
 *   method resolves, a durable store has put the change where `SIGKILL` and power loss do not
 *   reach it.
 * - **Copies.** Tasks go in and come out by value: changing an object that was passed in or returned
 *   changes nothing that is stored.
 * - **Absence.** `get` answers `undefined`; `update` and `delete` of an unknown id reject with
 *   `not_found`.
 * - **Moves.** `changeTask` in `task-changes.ts` decides; what it refuses is refused with its `conflict` and
 *   changes nothing.
 * - **Errors.** `ServiceError` with the code named here. A store that cannot be reached, is full or
 *   is closed rejects with `unavailable` and the original error as `cause`. Where the server's or the
 *   disk's last answer was lost, the write may have taken effect all the same.
 */
export interface TaskStore {
  /** Registry key, for logs. */
  readonly name: string;

  /**
   * Stores a new task. With `idempotency`: if the key was used by a `create` in the last 24 hours,
   * nothing is stored and the promise gives the task as that call answered it, even if it has
   * changed or is deleted by now; of concurrent calls with one key exactly one stores.
   *
   * @throws `idempotency_mismatch` if that call had another fingerprint; `conflict` if the id is
   * taken; `unavailable` with `retryAfterS` while `maxQueued` (an option of every store) tasks or more
   * are queued.
   */
  create(task: Task, idempotency?: Idempotency): Promise<Task>;

  get(id: string): Promise<Task | undefined>;

  /** Newest first: tasks with a `seq` below `query.before`, at most `query.limit` of them. */
  list(query: ListQuery): Promise<TaskPage>;

  /**
   * Applies `change`. A move out of `running` ends the lease; a move to `queued` makes the task
   * claimable from `options.runAfter` on (default: at once).
   *
   * @throws `conflict` if the move is not allowed, or if `options.lease` is given and is not the
   * lease that the task is now held by.
   */
  update(id: string, change: TaskChange, options?: UpdateOptions): Promise<Task>;

  /** Removes the task, whatever its state, and gives what was removed. */
  delete(id: string): Promise<Task>;

  /**
   * Takes the oldest task that may run now and whose host (`URL.host` of `task.url`) is not in
   * `query.exceptHosts`: one that is `queued` with its `runAfter` reached, or `running` under a
   * lease that has run out (its worker died). It becomes `running` under a new lease; no other claim
   * gets it until the lease runs out or the task leaves `running`. A queued task has one attempt more
   * by it; a dead worker's attempt goes on, its progress kept, with one death more. Under a lease that
   * has run out the task can be updated until another claim takes it. A store that one process has to
   * itself lets all leases of the process before it run out when it is opened; one that several
   * processes share looks for leases that have run out every few seconds, and may hold to a length of
   * its own for all of them. `undefined` where there is none.
   */
  claim(query: ClaimQuery): Promise<Claim | undefined>;

  /**
   * Extends the lease to `leaseMs` from now; `false` where it is no longer held. One that has run out is
   * extended too, as long as no claim has taken the task and the store has not noticed.
   */
  heartbeat(id: string, lease: string, leaseMs: number): Promise<boolean>;

  /** Resolves if the store can take a write now, else rejects with `unavailable`. */
  ping(): Promise<void>;

  /** Lets accepted writes finish, then frees everything; safe to call twice. */
  close(): Promise<void>;
}

/** A store and the feed to which all of its changes are published, whichever process makes them. */
export interface OpenedStore {
  store: TaskStore;
  events: TaskEvents;
}

export interface Idempotency {
  /** 1–255 characters, as the client sent it. */
  key: string;
  /** Equal for equal requests; compared, not read. */
  fingerprint: string;
}

export interface ListQuery {
  /** 1–200 */
  limit: number;
  /** Only tasks in this state now. */
  state?: State;
  /** A `next` of an earlier page; absent: from the newest. */
  before?: number;
}

export interface TaskPage {
  tasks: Task[];
  /** The next page's `before`; absent: there are no further tasks. */
  next?: number;
}

export interface UpdateOptions {
  lease?: string;
  runAfter?: Date;
  /** The run has got further than those before it: their deaths no longer count. */
  madeProgress?: boolean;
}

export interface ClaimQuery {
  leaseMs: number;
  exceptHosts?: readonly string[];
}

export interface Claim {
  task: Task;
  /** Shown to `update` and `heartbeat` to prove that the task is still held. */
  lease: string;
  /** Workers in a row that died with this task and got no further; 0 after every orderly move. */
  stalledCount: number;
  /** How long the lease lasts without a heartbeat, where the store holds to a length of its own. */
  leaseMs?: number;
}

/** How long an idempotency key is kept. */
export const idempotencyTtlMs = 24 * 60 * 60 * 1000;
