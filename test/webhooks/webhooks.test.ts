import { describe, expect, onTestFinished, test, vi } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import { trimmedAtOnce } from "../../src/stores/outbox.ts";
import { accessKeyOf, newSecret } from "../../src/keys/secrets.ts";
import { delivered, disabled, openWebhooks, refused, startReceiver, unavailable } from "./harness.ts";
import { accept, answer, type Respond } from "./receiver.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

describe("a webhook", () => {
  test.each(["succeeded", "failed", "canceled"] as const)(
    "is told that a task has %s, with the task as it is, signed",
    async (state) => {
      const { receiver, store, end } = await openWebhooks();
      const id = await end(state);
      const [message] = await receiver.until(1);
      const task = await store.get(id);
      expect(message).toMatchObject({ type: `task.${state}`, timestamp: task?.updated_at });
      expect(message?.data).toEqual(JSON.parse(JSON.stringify(task)));
      expect(message?.request).toMatchObject({
        method: "POST",
        url: "/ended?token=hidden",
        headers: { "content-type": "application/json", "webhook-id": message?.id },
      });
      expect(receiver.forged).toBe(0);
    },
  );

  test("gets the trace in which the task was created, with another parent", async () => {
    const { receiver, store } = await openWebhooks();
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;
    const trace = { traceparent, tracestate: "vendor=of it" };
    const { id } = await store.create(newTask("https://video.example.com/", {}, new Date(), undefined, trace));
    await store.update(id, { state: "canceled" });
    const [message] = await receiver.until(1);
    const sent = String(message?.request.headers["traceparent"]);
    expect(sent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
    expect(sent).not.toBe(traceparent);
    expect(message?.request.headers["tracestate"]).toBe("vendor=of it");
  });

  test("of a key gets the messages of its own tasks, signed with its own secret", async () => {
    const { receiver, store, end, logged } = await openWebhooks();
    const own = await startReceiver();
    const given = { name: "anna", admin: false, limits: {}, webhook: own.endpoint };
    await store.keys.add(accessKeyOf(newSecret(), given, new Date()));
    await end("canceled", "bert");
    const hers = await end("canceled", "anna");
    const [message] = await own.until(1);
    expect(message?.data).toMatchObject({ id: hers, owner: "anna" });
    await receiver.until(2);
    await logged(delivered, 3);
    expect(own.messages).toHaveLength(1);
  });

  test("gets at most eight messages at a time", async () => {
    const { receiver, end, logged } = await openWebhooks();
    const held: (() => void)[] = [];
    receiver.respond = (response, message) => {
      held.push(() => accept(response, message));
      // A ninth one would arrive meanwhile.
      if (held.length === 8) setTimeout(() => held.splice(0).forEach((release) => release()), 20);
    };
    await Promise.all(Array.from({ length: 40 }, () => end()));
    await logged(delivered, 40);
    expect(receiver.mostAtOnce).toBe(8);
  });

  test("that is fast waits for none of many that hang", async () => {
    const { store, end } = await openWebhooks();
    const add = async (name: string, respond: Respond) => {
      const receiver = await startReceiver();
      receiver.respond = respond;
      const given = { name, admin: false, limits: {}, webhook: receiver.endpoint };
      await store.keys.add(accessKeyOf(newSecret(), given, new Date()));
      return receiver;
    };
    const slow = await Promise.all(Array.from({ length: 9 }, (_, n) => add(`slow${n}`, () => {})));
    for (let n = 0; n < 9; n += 1) await Promise.all(Array.from({ length: 20 }, () => end("canceled", `slow${n}`)));
    await Promise.all(slow.map((receiver) => receiver.until(7)));
    const fast = await add("fast", accept);
    for (let n = 1; n <= 3; n += 1) {
      await end("canceled", "fast");
      expect(await fast.until(n)).toHaveLength(n);
    }
    const atOnce = slow.reduce((sum, { mostAtOnce }) => sum + mostAtOnce, 0);
    expect(atOnce).toBeGreaterThanOrEqual(60);
    expect(atOnce).toBeLessThanOrEqual(72);
  });

  test("gets the messages of one task in their order, also if the first is refused", async () => {
    const { receiver, store, clock, end, logged } = await openWebhooks();
    receiver.respond = answer(500);
    const id = await end("failed");
    await logged(refused);
    for (const state of ["queued", "running", "succeeded"] as const) {
      await store.update(id, { state });
    }
    receiver.respond = accept;
    await end();
    await logged(delivered);
    clock.advance(5_000);
    await logged(delivered, 3);
    const types = receiver.messages.filter(({ data }) => data.id === id).map(({ type }) => type);
    expect(types).toEqual(["task.failed", "task.failed", "task.succeeded"]);
  });
});

describe("a message that is not accepted", () => {
  test.each([302, 307, 400, 500])(
    "with %i is sent again after longer and longer delays, the same each time",
    async (status) => {
      const { receiver, clock, end, log, logged } = await openWebhooks();
      const elsewhere = await startReceiver();
      receiver.respond = answer(status, { location: elsewhere.endpoint.url });
      await end();
      const delays = [5_000, 300_000, 30 * 60_000, 2 * hourMs, 5 * hourMs, 10 * hourMs];
      for (const [n, delayMs] of delays.entries()) {
        const lines = await logged(refused, n + 1);
        expect(lines.at(-1)).toMatchObject({ level: "warn", status, delayMs });
        clock.advance(delayMs);
      }
      const last = await logged(refused, 7);
      const lastDelayMs = Number(last.at(-1)?.["delayMs"]);
      expect(lastDelayMs).toBe(dayMs - 60_000 - 63_305_000);
      clock.advance(lastDelayMs);
      await logged("webhook message given up after 24 hours");
      expect(new Set(receiver.messages.map(({ id }) => id)).size).toBe(1);
      expect(receiver.messages).toHaveLength(8);
      expect(elsewhere.messages).toEqual([]);
      expect(log.at(-1)?.["level"]).toBe("error");
    },
  );

  test("leaves no secret in the log", async () => {
    const { receiver, end, log, logged } = await openWebhooks();
    receiver.respond = answer(500);
    await end();
    await logged(refused);
    const text = JSON.stringify(log);
    expect(text).toContain(new URL(receiver.endpoint.url).host);
    expect(text).not.toMatch(/hidden|whsec_|ended/);
  });
});

describe("a receiver", () => {
  test("that is gone (410) gets nothing more, until its key has another webhook", async () => {
    const { receiver, store, clock, end, logged } = await openWebhooks();
    const own = await startReceiver();
    const given = { name: "anna", admin: false, limits: {}, webhook: own.endpoint };
    await store.keys.add(accessKeyOf(newSecret(), given, new Date()));
    own.respond = answer(410);
    await end("canceled", "anna");
    const dropped = "webhook message dropped: its endpoint is gone";
    const [line] = await logged(disabled);
    expect(line).toMatchObject({ level: "error", status: 410 });
    await end("canceled", "anna");
    await logged(dropped);
    expect(own.messages).toHaveLength(1);
    const other = await startReceiver();
    await store.keys.remove("anna");
    await store.keys.add(accessKeyOf(newSecret(), { ...given, webhook: other.endpoint }, new Date()));
    clock.advance(1_000);
    await end("canceled", "anna");
    await other.until(1);
    await receiver.until(3);
  });

  test.each([429, 503])("with %i is left alone for as long as it asks for", async (status) => {
    const { receiver, clock, end, logged } = await openWebhooks();
    receiver.respond = answer(status, { "retry-after": "120" });
    await end();
    const [line] = await logged(unavailable);
    expect(line).toMatchObject({ level: "warn", status, delayMs: 120_000 });
    receiver.respond = accept;
    await end();
    clock.advance(119_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(receiver.messages).toHaveLength(1);
    clock.advance(1_000);
    await logged(delivered, 2);
  });

  test("that hangs is given up after the time limit, and tried with one message at a time", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { receiver, webhooks, clock, end, logged } = await openWebhooks({
      totalTimeoutMs: 60_000,
      startsLater: true,
    });
    receiver.respond = () => {};
    await Promise.all(Array.from({ length: 20 }, () => end()));
    // All are there before the first is given up.
    webhooks.start();
    await receiver.until(8);
    vi.advanceTimersByTime(60_000);
    const first = await logged(unavailable, 8);
    expect(first[0]).toMatchObject({ code: "upstream_timeout" });
    clock.advance(5_000);
    await receiver.until(9);
    vi.advanceTimersByTime(60_000);
    const second = (await logged(unavailable, 9)).at(-1);
    expect(second).toMatchObject({ delayMs: 10_000 });
    receiver.respond = accept;
    clock.advance(10_000);
    await logged(delivered, 20);
    // Each once, and those that hung: eight at first, then one.
    expect(receiver.messages).toHaveLength(20 + 9);
  });

  test("that breaks off all connections gets all messages once it is back", async () => {
    const { receiver, clock, end, logged } = await openWebhooks();
    receiver.respond = (response) => void response.destroy();
    const ended = await Promise.all(Array.from({ length: 50 }, () => end()));
    await logged(unavailable, 8);
    receiver.respond = accept;
    clock.advance(3 * hourMs);
    await logged(delivered, 50);
    const arrived = new Set(receiver.messages.map(({ data }) => data.id));
    expect([...arrived].toSorted()).toEqual(ended.toSorted());
  });

  test("whose response never ends has accepted the message", async () => {
    const { receiver, end, logged } = await openWebhooks();
    receiver.respond = (response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(64 * 1024);
      const write = () => {
        while (!response.destroyed && response.write(chunk));
        response.once("drain", write);
      };
      write();
    };
    await end();
    await logged(delivered);
  });
});

test("of too many messages that wait for a key's receiver the oldest are dropped, and logged", async () => {
  const { receiver, store, webhooks, metrics, end, log, logged } = await openWebhooks({
    startsLater: true,
    limits: { messages: 2, bytes: 1_000_000 },
  });
  const given = { name: "anna", admin: false, limits: {}, webhook: receiver.endpoint };
  await store.keys.add(accessKeyOf(newSecret(), given, new Date()));
  const ended = [await end("canceled", "anna"), await end("canceled", "anna"), await end("canceled", "anna")];
  webhooks.start();
  await logged(delivered, 3 + 2);
  const [dropped] = await logged("the oldest webhook messages of a key dropped: too many wait for its receiver");
  expect(dropped).toMatchObject({ level: "error", key: "anna", messages: 1 });
  expect(receiver.messages.filter(({ data }) => data.id === ended[0])).toHaveLength(1);
  expect(log.filter(({ level }) => level === "error")).toHaveLength(1);
  expect(await metrics.read()).toContain('unreel_webhook_deliveries_total{outcome="dropped"} 1');
});

test("that is looked at before the minute is over once many tasks of the key have ended", async () => {
  const { receiver, store, end, logged } = await openWebhooks({ limits: { messages: 2, bytes: 1_000_000 } });
  receiver.respond = (response) => void response.writeHead(503).end();
  const given = { name: "anna", admin: false, limits: {}, webhook: receiver.endpoint };
  await store.keys.add(accessKeyOf(newSecret(), given, new Date()));
  for (let n = 0; n < trimmedAtOnce + 100; n += 1) await end("canceled", "anna");
  const [dropped] = await logged("the oldest webhook messages of a key dropped: too many wait for its receiver");
  expect(dropped?.["messages"]).toBeGreaterThan(trimmedAtOnce - 100);
});

describe("stopping", () => {
  test("lets a request in flight finish, and leaves the other messages in the outbox", async () => {
    const { receiver, store, webhooks, end } = await openWebhooks();
    const held: (() => void)[] = [];
    receiver.respond = (response, message) => void held.push(() => accept(response, message));
    await Promise.all(Array.from({ length: 10 }, () => end()));
    await receiver.until(8);
    const stopped = webhooks.stop();
    for (const respond of held) respond();
    await stopped;
    expect(receiver.messages).toHaveLength(8);
    const left = await store.outbox.claim({ endpoint: "*", limit: 64, leaseMs: 1_000 });
    expect(left).toHaveLength(2);
  });
});
