import type { Broadcast, SharedPauses } from "../feed/processes.ts";
import type { TaskEventPublisher, TaskEvents } from "../feed/task-events.ts";
import type { Grown, Growing, Reused, Idempotency, StoredFiles, StoredFilesQuery } from "./store-types.ts";
import type { State, Task } from "../model/task.ts";
import type { TaskChange } from "../feed/task-changes.ts";
import type { ClockOptions } from "./clock.ts";
import type { KeyStore } from "./key-store.ts";
import type { Outbox } from "./outbox.ts";

/**
 * Contract of a task store. It can be implemented from this text alone; the suite in
 * `test/contracts/task-store.ts` holds every implementation to it.
 *
 * - **Order.** Each task gets a sequence number (`seq`, a positive safe integer) in the order in which `create` was acknowledged; no
 *   number is used twice. Ids are not ordered within a millisecond, so pages and claims go by `seq`.
 * - **Atomicity.** Every method takes effect wholly or not at all, also if the process dies meanwhile; concurrent calls act as if one
 *   came after the other. When the promise of a writing method resolves, a durable store has put the change where `SIGKILL` and power
 *   loss do not reach it.
 * - **Copies.** Tasks go in and come out by value: changing an object that was passed in or returned
 *   changes nothing that is stored.
 * - **Time.** Leases, delays and the life of idempotency keys are durations: to set the clock neither ends nor extends them.
 * - **Damage.** A record that was damaged, by hand or by a failing disk, is left out of pages and claims, and logged once
 *   with its id and `seq`. `get` and `update` of it reject with a `DamagedTaskError`; `delete` removes it.
 * - **Size.** A record has at most 256,000 bytes: the `info` of a longer one is thinned as `boundInfo` says when it is
 *   stored, and, of one that an earlier release has stored, when it is read.
 * - **Owners.** A task belongs to its `owner`, which never changes; a task may have none. A
 *   page of an owner's tasks costs the same however many tasks others have.
 * - **Turns.** Owners take turns in claims, so that one with many tasks does not hold up the others. Tasks
 *   without an owner count as those of one more owner.
 * - **Quotas.** An owner is held to the `limits` of the key of its name, as they are stored at that moment; one without a key has
 *   none. However many calls come at once, from however many processes, a limit is neither exceeded nor applied too early.
 * - **Collections.** A task becomes a collection by an update of its `kind`. Its members are tasks, each at an index; a task may be a member of
 *   several, of one more than once. The transaction that changes the state of a member also changes the `counts` of its collections
 *   (`changeMembers`), and the state of an idle one (`isIdle`), which does not count as running for owners and claims; the event of a
 *   collection comes after that of the member. Members may end after their collection, in steps, before its `update` or `delete`
 *   resolves; those that are left when the process dies end before the store's next claim.
 * - **Absence.** `get` returns undefined; `update` and `delete` of an unknown id reject with `not_found`.
 * - **Transitions.** `changeTask` in `task-changes.ts` decides; the store passes its `conflict` on and changes nothing.
 * - **Errors.** `ServiceError` with the code named here. A store that is unreachable, out of space or
 *   closed rejects with `unavailable` and the original error as `cause`. If only the response of the
 *   server or the disk was lost, the write may have taken effect.
 */
export interface TaskStore {
  /**
   * Every change of a task, once and in the order in which they took effect, whichever process made it.
   * It is published once it is stored; a store that one process has to itself publishes it before the
   * promise of the writing method resolves. Calls that change nothing publish nothing. The event of an update
   * has `info` if `change.info` was given, that of `create` has it, others have not.
   */
  readonly events: TaskEvents;

  /** The keys with which clients may use the service. */
  readonly keys: KeyStore;

  /** The hosts that are left alone, and what else processes tell each other, if several can share the store. */
  readonly pauses?: SharedPauses;
  readonly broadcast?: Broadcast;

  /** The messages about ended tasks that webhooks' receivers have not had yet. */
  readonly outbox: Outbox;

  /**
   * Stores a new task. With `idempotency`, nothing is stored if a `create` for the same owner used the key in the last 24 hours: the promise
   * resolves to the task as that call returned it, even if it was changed or deleted since. Of concurrent calls with one key exactly one stores.
   *
   * @throws `idempotency_mismatch` if that call had another fingerprint; `conflict` if the id is taken; `unavailable` with `retryAfterS` while
   * `maxQueued` tasks or more are queued; `quota_exceeded`
   */
  create(task: Task, idempotency?: Idempotency): Promise<Task>;

  /**
   * As `create`, unless the owner has a task for the same video with the same options (`isSameVideo`) that is queued, running, or has its
   * file: then the promise resolves to the newest such task, as `reusedAnswer` bounds it. Of concurrent calls for one video exactly one
   * stores. A used key gets what the first call got.
   */
  reuse(task: Task, idempotency?: Idempotency): Promise<Reused>;

  /**
   * Adds members to a collection, from the first one on, as many as may be queued. If some are left, only `made` of `growth.slice` changes:
   * it is the index of the last one that was added. Members up to that index are passed over, so that a call can be repeated.
   *
   * @throws `conflict` if the lease does not hold the collection.
   */
  grow(id: string, growing: Growing): Promise<Grown>;

  /**
   * Queues up to 200 failed and canceled members of a collection again whose index is above `growth.retried`, as many as
   * may be queued. `growth.retried` becomes the index of the last one; it is removed once there are none after it, which
   * ends the lease if nothing else is left to be done.
   *
   * @throws `conflict` if the lease does not hold the collection.
   */
  retryMembers(id: string, lease: string): Promise<Grown>;

  get(id: string): Promise<Task | undefined>;

  /**
   * Returns tasks, newest first: those with a `seq` below `query.before`, at most `query.limit` of them, and at least one
   * but not more than 1,000,000 bytes of records; fewer if records are damaged. Tasks that a collection has made are only
   * among those of `query.parent`, which come by index.
   */
  list(query: ListQuery): Promise<TaskPage>;

  /**
   * Applies `change` and returns the changed task. A change of state ends the lease; one to `queued`
   * makes the task claimable from `options.runAfter` on (default: at once; at most `maxDelayMs` from now).
   *
   * @throws
   * - `conflict` if the transition is not allowed; if `options.lease` does not hold the task; if `options.from` does not contain
   *   the task's state, which the message names; if `options.hasFile` is true and the task has no file
   * - `quota_exceeded`
   * - `StorageFullError` if the files of all tasks would have more than `options.maxStoredBytes` together, however many calls
   *   come at once
   *
   * A collection that is canceled cancels those queued and running members that a collection has made and that are in no
   * other collection which is queued or running. One that fails while members are queued or running stays running, idle.
   */
  update(id: string, change: TaskChange, options?: UpdateOptions): Promise<Task>;

  /**
   * Removes the task, whatever its state, with its places in collections; with a collection those members that a collection has made
   * and that are in no other one. Returns what was removed; undefined if its record was damaged.
   */
  delete(id: string): Promise<Task | undefined>;

  /**
   * Claims a task that may run now and whose host (`URL.host` of `task.url`) is not in `query.exceptHosts`: the oldest one of the
   * owner whose turn it is. Of the owners with such a task that are not in `query.exceptOwners`, that is the one with the fewest running
   * tasks; of these, the one whose last claim is longest ago or who has had none; of these, the first by name. Claims of several
   * processes at the same moment may see each other's tasks as not running yet, but none passes over an owner: once the task whose
   * turn it is has been stored, each process makes at most one claim before that task is claimed.
   *
   * A task may run if it is `queued` with its `runAfter` reached and fewer than `limits.max_running`
   * tasks of its owner are running, or `running` under an expired lease (its worker died). It becomes `running` under a new lease; no other claim gets it until the
   * lease expires or the task leaves `running`. For a queued task this begins a new attempt; for a dead
   * worker's task the attempt, its progress and `stalledCount` continue. Until another claim takes the task, an
   * expired lease still allows updates.
   *
   * A store that one process has to itself expires all leases when it is opened. A store that several
   * processes share looks for expired leases every few seconds, and may use a lease of its own length.
   *
   * Returns undefined if there is no such task.
   */
  claim(query: ClaimQuery): Promise<Claim | undefined>;

  /**
   * Extends the lease to `leaseMs` from now; false if it no longer holds the task. An expired lease is
   * extended too, unless another claim has taken the task or the store has noticed the expiry.
   */
  heartbeat(id: string, lease: string, leaseMs: number): Promise<boolean>;

  /** Returns the ids of those members with a file that `delete` of the collection would remove; none if there is no such task. */
  ownMembers(id: string): Promise<string[]>;

  /**
   * Returns how many bytes the files of all tasks have together, and a page of these files, those first that
   * finished first. Costs the same however many tasks there are.
   */
  storedFiles(query: StoredFilesQuery): Promise<StoredFiles>;

  /** Counts all tasks, at the same cost however many there are. */
  count(): Promise<TaskCounts>;

  /** Resolves if the store can take a task now, else rejects with `unavailable`. */
  ping(): Promise<void>;

  /** Lets accepted writes finish, then frees everything; safe to call twice. */
  close(): Promise<void>;
}

/** The methods of a store that read tasks, and those that write them. */
export type TaskReads = Pick<TaskStore, "get" | "list" | "ownMembers" | "storedFiles" | "count">;
export type TaskWrites = Pick<
  TaskStore,
  "create" | "reuse" | "grow" | "retryMembers" | "update" | "delete" | "claim" | "heartbeat"
>;

/** What the stores of one process have in common. */
export interface StoreOptions extends ClockOptions {
  /** Tasks that may be queued, of one owner with a key nine tenths of what others leave; default 100,000. */
  maxQueued?: number;
  /** For `KeyAllowance`. */
  maxKeptBytes?: number | undefined;
  /** Where the store publishes its changes; default: a new feed. */
  events?: TaskEventPublisher;
  /** Whether `outbox` gets a message about each ended task for the service's own endpoint; default false. */
  webhook?: boolean;
}

export interface ListQuery {
  /** 1–200 */
  limit: number;
  /** Only tasks in this state now. */
  state?: State | undefined;
  /** Only tasks of this owner. */
  owner?: string | undefined;
  /** Only members of this collection, by index. */
  parent?: string | undefined;
  /** A `next` of an earlier page; absent: from the newest, or from the first member. */
  before?: number | undefined;
}

export interface TaskPage {
  tasks: Task[];
  /** The next page's `before`; absent: there are no further tasks. */
  next?: number;
}

export interface TaskCounts {
  byState: Record<State, number>;
  /** `created_at` of the oldest queued task, those that wait for a retry included; null: none is queued. */
  oldestQueuedAt: string | null;
}

export interface UpdateOptions {
  /** The lease that must hold the task. */
  lease?: string;
  /** The states one of which the task must be in; default: any that the transition allows. */
  from?: readonly State[];
  /** Whether the task must have a file; default false. */
  hasFile?: boolean;
  /** How many bytes the files of all tasks may have together after the change; default: any number. */
  maxStoredBytes?: number;
  /** When a task that becomes queued may be claimed. */
  runAfter?: Date | undefined;
  /** The task's `stalledCount` from now on; default: as before, or 0 if the change has a state. */
  stalledCount?: number | undefined;
}

export interface ClaimQuery {
  leaseMs: number;
  exceptHosts?: readonly string[];
  /** `""`: none. */
  exceptOwners?: readonly string[];
}

export interface Claim {
  task: Task;
  /** Proves to `update` and `heartbeat` that the task is still held. */
  lease: string;
  /** As the last update has left it: runs in a row that began something which may end their process, and died in it. */
  stalledCount: number;
  /** How long the lease lasts without a heartbeat, if the store uses a length of its own. */
  leaseMs?: number;
  /** How many bytes the `max_bytes` of the owner's key leaves at the claim; default: any number. */
  bytesLeft?: number | undefined;
}

/** Longest delay of a retry. */
export const maxDelayMs = 24 * 60 * 60 * 1000;
