import { describe, expect, it } from "vitest";
import { changeTask } from "../../src/feed/task-changes.ts";
import { createBarView, createLineView } from "../../src/watch/watch-tasks.ts";
import { printable, taskLine } from "../../src/watch/task-line.ts";
import { halfway, runningTask } from "./task.ts";
import { createTerminal, shown } from "./terminal.ts";

const a = runningTask("https://example.com/a", { progress: halfway });
const b = runningTask("https://example.com/b");
const done = changeTask(a, { state: "succeeded" }, new Date());

describe("a line about a task", () => {
  it("has bar, percent, size, speed, time left and title", () => {
    expect(taskLine(a).replaceAll(/ +/g, " ")).toBe(
      "[##########----------] 50 % 12.3 MB of 24.7 MB 3.1 MB/s 0:04 left https://example.com/a",
    );
  });

  it.each([
    [{ ...halfway!, total_bytes: null, eta: null, speed: null }, "? % 12.3 MB of ?"],
    [{ ...halfway!, downloaded_bytes: 99_999_999_999 }, "100 % 100.0 GB of 24.7 MB"],
    [{ ...halfway!, downloaded_bytes: 0, total_bytes: 0 }, "? % 0 B of 0 B"],
    [{ ...halfway!, eta: 3_725.2 }, "1:02:06 left"],
    [{ ...halfway!, stage: "processing" as const }, "processing"],
    [{ ...halfway!, stage: "resolving" as const }, "resolving"],
    [{ ...halfway!, waiting_for: "speed" as const }, "left waiting for the speed limit"],
    [{ ...halfway!, stage: "resolving" as const, waiting_for: "host" as const }, "resolving waiting for the host"],
    [null, "resolving"],
  ])("shows what is known: %o", (progress, part) => {
    expect(taskLine({ ...a, progress }).replaceAll(/ +/g, " ")).toContain(part);
  });

  it("shows how a task ended", () => {
    const error = { code: "no_media", message: "there is nothing", retryable: false };
    expect(taskLine(done)).toMatch(/^succeeded .*example\.com\/a$/);
    expect(taskLine({ ...a, state: "failed", error })).toMatch(/^failed: there is nothing .*\/a$/);
    expect(taskLine({ ...a, state: "canceled" })).toMatch(/^canceled .*\/a$/);
    const down = { code: "upstream_unreachable", message: "no connection", retryable: true };
    const waiting = { ...a, state: "queued" as const, error: down, retry_at: "2030-01-31T12:00:00.000Z" };
    expect(taskLine(waiting)).toMatch(/^retrying at \d\d:\d\d:\d\d after: no connection .*\/a$/);
    const removed = { ...done, removed_at: "2030-01-31T12:00:00.000Z" };
    expect(taskLine(removed)).toMatch(/^succeeded  file removed 2030-01-31T12:00:00\.000Z .*\/a$/);
  });

  it.each([
    ["\u001B[2J\u001B]0;title\u0007clear", "[2J ]0;title clear"],
    ["\u009B31mred\u009C", "31mred"],
    ["one\r\ntwo\tthree\u2028four", "one two three four"],
    ["safe\u202Egnp.exe", "safe gnp.exe"],
    ["\ud800 lone", "\ufffd lone"],
    ["x".repeat(10_000), "x".repeat(200)],
  ])("does not control the terminal: %j", (text, plain) => {
    expect(printable(text)).toBe(plain);
  });
});

describe("the bar view", () => {
  it("keeps the bars in place, with the ended tasks above them", () => {
    const terminal = createTerminal({ isTTY: true });
    const view = createBarView(terminal);
    view.show([{ type: "task", task: a }]);
    view.show([{ type: "task", task: b }]);
    view.show([{ type: "task", task: { ...a, progress: null } }]);
    expect(shown(terminal.text)).toEqual([taskLine({ ...a, progress: null }), taskLine(b)]);
    view.show([{ type: "task", task: done }]);
    expect(shown(terminal.text)).toEqual([taskLine(done), taskLine(b)]);
    view.notify("the service is unavailable");
    expect(shown(terminal.text)).toEqual([taskLine(done), "the service is unavailable", taskLine(b)]);
    view.show([{ type: "deleted", task: { id: b.id } }]);
    expect(shown(terminal.text)).toEqual([taskLine(done), "the service is unavailable"]);
  });

  it.each([createBarView, createLineView])(
    "shows an ended task again only if its line has changed: %o",
    (createView) => {
      const terminal = createTerminal({ isTTY: true });
      const view = createView(terminal);
      const inLibrary = { ...done, library: [{ path: "a.mp4", size: 1, modified_at: "2030-01-31T12:00:00.000Z" }] };
      const removed = { ...inLibrary, removed_at: "2030-01-31T12:00:00.000Z" };
      const bar = createView === createBarView ? [] : [taskLine(a)];
      for (const task of [a, done, inLibrary]) view.show([{ type: "task", task }]);
      expect(shown(terminal.text)).toEqual([...bar, taskLine(done)]);
      for (const task of [removed, a, done]) view.show([{ type: "task", task }]);
      expect(shown(terminal.text)).toEqual([...bar, taskLine(done), taskLine(removed), ...bar, taskLine(done)]);
    },
  );

  it("never has more bars than the terminal has rows", () => {
    const terminal = createTerminal({ isTTY: true, rows: 5 });
    const view = createBarView(terminal);
    const tasks = Array.from({ length: 10 }, (_, n) => runningTask(`https://example.com/${n}`));
    for (const task of tasks) view.show([{ type: "task", task }]);
    const lines = shown(terminal.text);
    expect(lines).toEqual([...tasks.slice(0, 3).map(taskLine), "… and 7 more"]);
  });

  it("shows bars on a terminal that does not say how many rows it has", () => {
    const terminal = createTerminal({ isTTY: true, rows: 0 });
    createBarView(terminal).show([{ type: "task", task: a }]);
    expect(shown(terminal.text)).toEqual([taskLine(a)]);
  });

  it("leaves the terminal as it was: with a cursor, and with long lines wrapped", () => {
    const terminal = createTerminal({ isTTY: true });
    const view = createBarView(terminal);
    view.show([{ type: "task", task: a }]);
    view.close();
    const modes = terminal.text.match(/\u001B\[\?\d+[hl]/g);
    expect(modes?.at(-1)).toBe("\u001B[?25h");
    expect(modes?.at(-2)).toBe("\u001B[?7h");
  });

  it("shows no tasks that are only queued", () => {
    const terminal = createTerminal({ isTTY: true });
    createBarView(terminal).show([{ type: "task", task: { ...a, state: "queued" } }]);
    expect(shown(terminal.text)).toEqual([]);
  });
});

describe("the line view", () => {
  it("has a line for each step of a task, and not for each of its changes", () => {
    const output = createTerminal();
    const view = createLineView(output);
    view.show([{ type: "task", task: { ...a, progress: null } }]);
    view.show([{ type: "task", task: { ...a, progress: { ...halfway!, stage: "resolving", total_bytes: null } } }]);
    for (let bytes = 0; bytes <= 1000; bytes += 1) {
      const progress = { ...halfway!, downloaded_bytes: bytes, total_bytes: 1000 };
      view.show([{ type: "task", task: { ...a, progress } }]);
    }
    view.show([{ type: "task", task: done }]);
    view.show([{ type: "deleted", task: { id: a.id } }]);
    const lines = output.text.trimEnd().split("\n");
    expect(lines).toHaveLength(13);
    expect(lines.at(-1)).toBe(taskLine(done));
    expect(output.text).not.toContain("\u001B");
  });
});
