import type { BaseLogger } from "pino";
import { Webhook } from "standardwebhooks";
import { ServiceError } from "../model/errors.ts";
import { nextTraceparent, parseTraceContext, type TraceContext } from "../model/trace-context.ts";
import type { PostClient, PostResponse } from "../net/http/post-client.ts";
import { parseRetryAfter } from "../net/upstream-error.ts";
import type { Outbox, OutboxMessage } from "../stores/outbox.ts";
import { type EndpointState, type Outcome, withJitter } from "./endpoints.ts";

export interface DeliverDeps {
  outbox: Outbox;
  client: PostClient;
  logger: Pick<BaseLogger, "debug" | "warn" | "error">;
  now: () => Date;
  random: () => number;
  /** Called when the endpoint has had its request, before the outbox is updated. */
  onResponse: () => void;
  /** Aborted when requests must end at once. */
  signal: AbortSignal;
  observer?: DeliveryObserver | undefined;
}

/** What is observed of the messages that a process sends. */
export interface DeliveryObserver {
  /** Called after each request, with how it went. */
  onRequest(outcome: Outcome["kind"], seconds: number): void;
  /** Called for each message that is not sent: it is too old, its endpoint is gone, or too many wait for it. */
  onRemoved(reason: "expired" | "dropped"): void;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** Delays after each refusal of a message, as the specification suggests them. */
const refusalDelaysMs = [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour];

/** How long after its task's end a message is still sent. */
const maxAgeMs = 24 * hour;
/** How long before that the last retry is due. */
const lastRetryMs = minute;

/** Statuses of a receiver, or of what is in front of it, that takes no message now. */
const unavailableStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/**
 * Sends a claimed message to its endpoint, or gives it up, and updates the outbox. Rejects only with the store's
 * error: then its lease expires and the message is sent again.
 */
export async function deliver(
  message: OutboxMessage,
  state: EndpointState | undefined,
  deps: DeliverDeps,
): Promise<void> {
  const { outbox, logger, observer } = deps;
  const about = { task: message.taskId, message: message.id, host: state?.host };
  if (state === undefined || state.isDisabled) {
    logger.debug(about, "webhook message dropped: its endpoint is gone");
    observer?.onRemoved("dropped");
    await outbox.remove(message);
  } else if (message.ageMs > maxAgeMs) {
    await giveUp(message, about, deps);
  } else {
    const settle = state.begin();
    const startMs = performance.now();
    const attempt = await send(message, state, deps);
    observer?.onRequest(attempt.outcome.kind, (performance.now() - startMs) / 1_000);
    settle(attempt.outcome);
    deps.onResponse();
    await follow(message, state, attempt, deps);
  }
}

async function giveUp(message: OutboxMessage, about: object, { outbox, logger, observer }: DeliverDeps): Promise<void> {
  logger.error({ ...about, ageMs: message.ageMs }, "webhook message given up after 24 hours");
  observer?.onRemoved("expired");
  await outbox.remove(message);
}

interface Attempt {
  outcome: Outcome;
  /** Why it has failed, for the log. */
  failure?: object;
}

async function send(
  { id, body }: OutboxMessage,
  { endpoint }: EndpointState,
  { client, now, signal }: DeliverDeps,
): Promise<Attempt> {
  const at = now();
  const headers = {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
    "webhook-signature": new Webhook(endpoint.secret).sign(id, at, body),
    ...traceOf(body),
  };
  try {
    return attemptOf(await client.post(new URL(endpoint.url), { headers, body, signal }), now());
  } catch (error) {
    if (signal.aborted) return { outcome: { kind: "aborted" } };
    const code = error instanceof ServiceError ? error.code : "internal";
    return { outcome: { kind: "unavailable", retryAfterS: undefined }, failure: { code } };
  }
}

/** Returns the header fields that continue the trace in which a task was created. */
function traceOf(body: string): Record<string, string> {
  const { data } = JSON.parse(body) as { data?: TraceContext };
  const { traceparent, tracestate } = parseTraceContext(data ?? {});
  if (traceparent === undefined) return {};
  return { traceparent: nextTraceparent(traceparent), ...(tracestate !== undefined && { tracestate }) };
}

function attemptOf({ status, headers }: PostResponse, at: Date): Attempt {
  if (status >= 200 && status <= 299) return { outcome: { kind: "delivered" } };
  const failure = { status };
  if (status === 410) return { outcome: { kind: "gone" }, failure };
  if (!unavailableStatuses.has(status)) return { outcome: { kind: "refused" }, failure };
  const retryAfterS = parseRetryAfter(headers.get("retry-after"), at);
  return { outcome: { kind: "unavailable", retryAfterS }, failure };
}

/** Removes or postpones the message in the outbox, and logs it. */
async function follow(
  message: OutboxMessage,
  state: EndpointState,
  { outcome, failure }: Attempt,
  deps: DeliverDeps,
): Promise<void> {
  const { outbox, logger, random } = deps;
  const { taskId, id, refusals, ageMs } = message;
  const about = { task: taskId, message: id, host: state.host, ...failure };
  switch (outcome.kind) {
    case "delivered":
      logger.debug(about, "webhook message delivered");
      return outbox.remove(message);
    case "gone":
      logger.error(about, "webhook disabled: its receiver is gone (410); a restart or another webhook enables it");
      return outbox.remove(message);
    case "aborted":
      return outbox.postpone(message, { delayMs: 0, refusals });
    case "unavailable": {
      const delayMs = Math.max(state.pauseMs(), second);
      logger.warn({ ...about, delayMs }, "webhook receiver unavailable; will retry");
      return outbox.postpone(message, { delayMs, refusals });
    }
    case "refused": {
      const leftMs = maxAgeMs - lastRetryMs - ageMs;
      if (leftMs <= 0) return giveUp(message, about, deps);
      const longMs = refusalDelaysMs[refusals] ?? 10 * hour;
      const delayMs = Math.max(Math.min(withJitter(longMs, random), leftMs), second);
      logger.warn({ ...about, delayMs }, "webhook message refused; will retry");
      return outbox.postpone(message, { delayMs, refusals: refusals + 1 });
    }
  }
}
