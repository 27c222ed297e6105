import { randomUUID } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parseJson } from "../model/schema.ts";
import type { SpeedDemand, SpeedLimit } from "./speed-limit.ts";

/** How processes announce to each other what they want; each receives its own messages, too. */
interface SpeedChannel {
  send(text: string): Promise<void>;
  follow(listener: (text: string) => void): () => void;
}

/** How often a process that receives something says so. */
const intervalMs = 1_000;

/** A process that says nothing for so long receives nothing. */
const silenceMs = 3_500;

/** Longest message, characters; those limits are left out that come after it. */
const maxLength = 7_000;

const Count = Type.Integer({ minimum: 0 });

/** What a process wants of each limit that it uses, which a process of another release may have sent. */
const Message = Type.Object({
  from: Type.String(),
  demands: Type.Array(Type.Tuple([Type.String(), Count, Count, Count])),
});

interface Peer {
  demands: ReadonlyMap<string, SpeedDemand>;
  receivedMs: number;
}

/** What is wanted of a limit that has not been used until now. */
const first: SpeedDemand = { waiting: 1, others: 0, bps: 0 };

/**
 * Makes a limit one of all processes on a channel: once a second each says what it wants, and takes its fair share. While
 * the channel does not work, the shares stay as they are: a process that receives nothing forgets no other. Returns the function that ends it.
 */
export function shareSpeed(limit: SpeedLimit, channel: SpeedChannel): () => void {
  const from = randomUUID();
  const peers = new Map<string, Peer>();
  let own: Peer["demands"] = new Map();
  /** Whether the others know that nothing is wanted. */
  let isAnnounced = true;

  const speedOf = (key: string, maxBps: number): number => {
    const others = [...peers.values()].flatMap(({ demands }) => demands.get(key) ?? []);
    return fairSpeed(maxBps, own.get(key) ?? first, others);
  };

  function receive(text: string): void {
    const message = parse(text);
    if (message === undefined) return;
    const demands = new Map(message.demands.map(([key, waiting, others, bps]) => [key, { waiting, others, bps }]));
    const receivedMs = performance.now();
    if (message.from === from) own = demands;
    else peers.set(message.from, { demands, receivedMs });
    for (const [id, peer] of peers) if (receivedMs - peer.receivedMs > silenceMs) peers.delete(id);
    limit.adjust(speedOf);
  }

  function announce(): void {
    const demands = limit.measure();
    if (demands.size === 0 && isAnnounced) return;
    isAnnounced = demands.size === 0;
    // Whoever reads the tasks from there logs an outage.
    channel.send(format(from, demands)).catch(() => {});
  }

  const unfollow = channel.follow(receive);
  const timer = setInterval(announce, intervalMs).unref();
  return () => {
    clearInterval(timer);
    unfollow();
  };
}

function format(from: string, found: ReadonlyMap<string, SpeedDemand>): string {
  const demands: Static<typeof Message>["demands"] = [];
  let length = 0;
  for (const [key, { waiting, others, bps }] of found) {
    const demand: (typeof demands)[number] = [key, waiting, others, Math.round(bps)];
    length += JSON.stringify(demand).length + 1;
    if (length > maxLength) break;
    demands.push(demand);
  }
  return JSON.stringify({ from, demands });
}

function parse(text: string): Static<typeof Message> | undefined {
  const message = parseJson(text);
  return Value.Check(Message, message) ? message : undefined;
}

/** What tasks that do not wait may have beyond what they received: a share of that, and a share of the limit. */
const growth = 0.05;
const reserve = 0.01;

/**
 * Returns how many bytes per second a process may have of a limit. Every task may have as many as any other one; what tasks that do not
 * wait leave of that is for those that do.
 */
export function fairSpeed(limitBps: number, own: SpeedDemand, others: readonly SpeedDemand[]): number {
  const groups = [own, ...others].flatMap((demand) => groupsOf(demand, limitBps));
  const total = groups.reduce((sum, { tasks }) => sum + tasks, 0);
  let [leftBps, left, speed] = [limitBps, total, 0];
  for (const { demand, tasks, mostBps } of groups.toSorted((a, b) => a.mostBps / a.tasks - b.mostBps / b.tasks)) {
    const share = Math.min(mostBps, (leftBps * tasks) / left);
    if (demand === own) speed += share;
    leftBps -= share;
    left -= tasks;
  }
  // What no process wants now.
  return speed + (leftBps * (own.waiting + own.others)) / total;
}

function groupsOf(demand: SpeedDemand, limitBps: number) {
  const { waiting, others, bps } = demand;
  const mostBps = Math.min(limitBps, bps * (1 + growth) + limitBps * reserve);
  const groups = [
    { demand, tasks: waiting, mostBps: limitBps },
    { demand, tasks: others, mostBps },
  ];
  return groups.filter(({ tasks }) => tasks > 0);
}
