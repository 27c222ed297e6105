import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { shareSpeed, fairSpeed } from "../../src/net/speed-sharing.ts";
import { type MaxSpeeds, SpeedLimit } from "../../src/net/speed-limit.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const kB = 1_000;
const maxSpeedBps = 6_000 * kB;

/** A channel that can fail, and whose listeners hear a text a moment after it was sent. */
function createChannel() {
  const listeners = new Set<(text: string) => void>();
  const channel = {
    works: true,
    sent: 0,
    async send(text: string) {
      if (!channel.works) throw new Error("the channel does not work");
      channel.sent += 1;
      setTimeout(() => {
        for (const listener of listeners) listener(text);
      }, 5);
    },
    follow(listener: (text: string) => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  return channel;
}

interface Task {
  host?: string;
  /** How fast its site is. */
  siteBps?: number;
}

/** Starts a process; `start` its tasks, each of which returns how many bytes it has received. */
function startProcess(channel: ReturnType<typeof createChannel>, max: Partial<MaxSpeeds> = { maxSpeedBps }) {
  const limit = new SpeedLimit({ maxSpeedBps: 0, maxSpeedPerHostBps: 0, ...max });
  const end = shareSpeed(limit, channel);
  onTestFinished(end);
  const received = { bytes: 0 };
  const start = ({ host = "a.test", siteBps = Infinity }: Task = {}) => {
    const share = limit.open();
    const run = async () => {
      for (;;) {
        const bytes = await share.take(host, 16 * kB);
        received.bytes += bytes;
        if (siteBps < Infinity) await new Promise((done) => setTimeout(done, (1_000 * bytes) / siteBps));
      }
    };
    void run();
    return share;
  };
  return { start, received, end };
}

/** Returns how many bytes per second each process receives meanwhile. */
async function speedsWithin(seconds: number, ...processes: { received: { bytes: number } }[]): Promise<number[]> {
  const before = processes.map(({ received }) => received.bytes);
  await vi.advanceTimersByTimeAsync(1_000 * seconds);
  return processes.map(({ received }, n) => (received.bytes - (before[n] ?? 0)) / seconds);
}

const sum = (speeds: readonly number[]) => speeds.reduce((all, speed) => all + speed, 0);

/** Expects a speed, within 5 %. */
function expectSpeed(speed: number, wantedBps: number): void {
  expect(speed / wantedBps).toBeGreaterThan(0.95);
  expect(speed / wantedBps).toBeLessThan(1.05);
}

test.each([
  ["in two processes", 3, 3],
  ["in one of two processes", 6, 0],
  ["in two processes, unevenly", 1, 5],
])("six tasks %s receive the limit, each as much as the others", async (_, inOne, inOther) => {
  const channel = createChannel();
  const [one, other] = [startProcess(channel), startProcess(channel)];
  for (let n = 0; n < inOne; n += 1) one.start();
  for (let n = 0; n < inOther; n += 1) other.start();
  await speedsWithin(3);
  const speeds = await speedsWithin(10, one, other);
  expectSpeed(sum(speeds), maxSpeedBps);
  expectSpeed(speeds[0]!, (maxSpeedBps * inOne) / 6);
});

test("what slow sites leave of the shares of their process is for the others, until they are faster", async () => {
  const channel = createChannel();
  const [slow, other] = [startProcess(channel), startProcess(channel)];
  for (let n = 0; n < 3; n += 1) slow.start({ siteBps: 100 * kB });
  const task = other.start();
  await speedsWithin(5);
  const speeds = await speedsWithin(10, slow, other);
  expectSpeed(speeds[0]!, 300 * kB);
  expectSpeed(sum(speeds), maxSpeedBps);
  slow.start();
  await speedsWithin(3);
  expectSpeed((await speedsWithin(10, other))[0]!, (maxSpeedBps - 300 * kB) / 2);
  task.close();
  await speedsWithin(3);
  expectSpeed((await speedsWithin(10, slow))[0]!, maxSpeedBps);
});

test("a limit of each host is one of all processes, too", async () => {
  const channel = createChannel();
  const max = { maxSpeedPerHostBps: 600 * kB };
  const [one, other] = [startProcess(channel, max), startProcess(channel, max)];
  one.start({ host: "a.test" });
  one.start({ host: "b.test" });
  other.start({ host: "a.test" });
  await speedsWithin(3);
  const speeds = await speedsWithin(10, one, other);
  expectSpeed(speeds[0]!, 900 * kB);
  expectSpeed(speeds[1]!, 300 * kB);
});

test("the share of a process that is gone goes to the others after some seconds", async () => {
  const channel = createChannel();
  const [one, other] = [startProcess(channel), startProcess(channel)];
  one.start();
  const task = other.start();
  await speedsWithin(3);
  other.end();
  task.close();
  expectSpeed((await speedsWithin(2, one))[0]!, maxSpeedBps / 2);
  await speedsWithin(3);
  expectSpeed((await speedsWithin(10, one))[0]!, maxSpeedBps);
});

test("a process without tasks forgets those that are gone as soon as it hears another one", async () => {
  const channel = createChannel();
  const [idle, one, other] = [startProcess(channel), startProcess(channel), startProcess(channel)];
  one.start();
  const task = other.start();
  await speedsWithin(3);
  other.end();
  task.close();
  await speedsWithin(5);
  idle.start();
  const share = maxSpeedBps / 2;
  // A second of it was saved.
  expectSpeed((await speedsWithin(1, idle))[0]!, 2 * share);
});

test("the shares stay as they are while processes cannot hear each other", async () => {
  const channel = createChannel();
  const [one, other] = [startProcess(channel), startProcess(channel)];
  one.start();
  other.start();
  await speedsWithin(3);
  channel.works = false;
  expectSpeed(sum(await speedsWithin(60, one, other)), maxSpeedBps);
  channel.works = true;
  await speedsWithin(3);
  expectSpeed(sum(await speedsWithin(10, one, other)), maxSpeedBps);
});

test("a process without tasks is silent, and one passes over messages that it cannot read", async () => {
  const channel = createChannel();
  const [one, other] = [startProcess(channel), startProcess(channel)];
  await speedsWithin(60, one, other);
  expect(channel.sent).toBe(0);
  one.start();
  for (const text of ["", "{}", "[]", '{"from":"x","demands":[["",-1,0,0]]}', '{"from":"x","demands":[["",1]]}']) {
    await channel.send(text);
  }
  await speedsWithin(3);
  expectSpeed((await speedsWithin(10, one))[0]!, maxSpeedBps);
});

test("processes share all of a limit, and tasks that wait have no less than their part of it", () => {
  const kinds = [0, 1, 3].flatMap((waiting) =>
    [0, 1, 5].flatMap((others) => (others === 0 ? [0] : [0, 300, 2_000]).map((bps) => ({ waiting, others, bps }))),
  );
  const used = kinds.filter(({ waiting, others }) => waiting + others > 0);
  for (const one of used) {
    for (const other of used) {
      for (const third of used) {
        const all = [{ ...one }, { ...other }, { ...third }];
        const tasks = sum(all.map(({ waiting, others }) => waiting + others));
        const speeds = all.map((own) =>
          fairSpeed(
            1_000,
            own,
            all.filter((each) => each !== own),
          ),
        );
        const isShort = speeds.some((speed, n) => speed < (1_000 * all[n]!.waiting) / tasks - 1e-6);
        if (isShort || Math.abs(sum(speeds) - 1_000) > 1e-6) expect.fail(`${JSON.stringify(all)}: ${speeds.join()}`);
      }
    }
  }
});
