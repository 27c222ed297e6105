import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished } from "vitest";
import { findFreePort } from "./free-port.ts";
import { collectLog, commandWith, type ServiceProcess, spawnService, startCommand } from "./service.ts";
import { startTestService } from "./test-service.ts";

const hasPython = spawnSync("python3", ["-c", "import pty"]).status === 0;

/**
 * Runs a command on a terminal, prints its process id, and prints what it reads from the terminal; no longer after SIGUSR1. The terminal is
 * closed when this ends.
 */
const onTerminal = `
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0: os.execv(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGUSR1, lambda *_: os.waitpid(pid, 0))
print(pid, flush=True)
while text := os.read(terminal, 65536): os.write(1, text)`;
import { makeFolder } from "../folder.ts";

async function openSettings(): Promise<{ DATA_DIR: string; PORT: string; CONCURRENCY: string }> {
  const DATA_DIR = makeFolder();
  return { DATA_DIR, PORT: await findFreePort(), CONCURRENCY: "0" };
}

type Settings = Awaited<ReturnType<typeof openSettings>>;

async function start(settings: Settings, command?: string[]): Promise<ServiceProcess> {
  const service = await startTestService(settings, command);
  // By then it handles signals.
  await fillLog(service.url, 50);
  return service;
}

/** Starts the program on a terminal; resolves once it listens. */
async function startOnTerminal(settings: Settings & { LOG_FORMAT?: string }) {
  const reader = spawn("python3", ["-c", onTerminal, ...startCommand], {
    env: { PATH: process.env["PATH"], YTDLP: "off", ...settings },
    stdio: ["ignore", "pipe", "ignore"],
  });
  let shown = "";
  reader.stdout.setEncoding("utf8").on("data", (text: string) => void (shown += text));
  await expect.poll(() => shown).toContain("\n");
  const pid = Number.parseInt(shown, 10);
  onTestFinished(() => {
    reader.kill("SIGKILL");
    if (isRunning(pid)) process.kill(pid, "SIGKILL");
  });
  const url = `http://127.0.0.1:${settings.PORT}`;
  await expect.poll(() => isLive(url)).toBe(true);
  return { pid, url, reader, shown: () => shown };
}

async function sendRaw(port: string, request: string): Promise<void> {
  const socket = connect(Number(port), "127.0.0.1");
  socket.end(Buffer.from(request));
  socket.resume();
  await once(socket, "close");
}

async function isLive(url: string): Promise<boolean> {
  const response = await fetch(`${url}/health/live`).catch(() => undefined);
  return response?.status === 200;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function expectEnd(pid: number): Promise<void> {
  await expect.poll(() => isRunning(pid)).toBe(false);
}

/** The same settings, port included, start again, without a warning. */
async function expectCleanStart(settings: Settings): Promise<void> {
  const { url, startLog, end } = await start(settings);
  expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  expect(startLog.filter(({ level }) => (level as number) > 30)).toEqual([]);
  expect(await end("SIGTERM")).toEqual({ code: 0, signal: null });
}

/** Each request is a line of the log, which has its path. */
async function fillLog(url: string, requests: number, path = "/tasks/", expected = 200): Promise<void> {
  for (let sent = 0; sent < requests; sent += 50) {
    const statuses = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const response = await fetch(url + path, { headers: { "x-request-id": "i".repeat(64) } });
        await response.bytes();
        return response.status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([expected]));
  }
}

async function untilExit(child: ChildProcess) {
  const [code, signal] = child.exitCode === null ? await once(child, "exit") : [child.exitCode, child.signalCode];
  return { code, signal };
}

describe.skipIf(!hasPython)("on a terminal (needs python3)", () => {
  it("the log is JSON if LOG_FORMAT says so, and the service stops when the terminal is closed", async () => {
    const settings = await openSettings();
    const { pid, reader, shown } = await startOnTerminal({ ...settings, LOG_FORMAT: "json" });
    await expect.poll(shown).toMatch(/^\{"level":30,.*"msg":"Server listening at/m);
    reader.kill("SIGKILL");
    await expectEnd(pid);
    await expectCleanStart(settings);
  });

  it("the log is lines for people, in which nothing controls the terminal; the service goes on while nobody reads them, and stops after SIGTERM", async () => {
    const settings = await openSettings();
    const { pid, url, reader, shown } = await startOnTerminal(settings);
    await expect.poll(shown).toMatch(/^\d\d:\d\d:\d\d\.\d{3} info  Server listening at http:\/\/127\.0\.0\.1:\d+\r?$/m);
    await sendRaw(
      settings.PORT,
      "GET /tasks/\u009b31m\u202e\u0007 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    await fetch(`${url}/tasks/?limit=0`);
    await expect
      .poll(shown)
      .toMatch(/ info  request method=GET path=\/tasks\/ status=400 code=invalid_request ms=\S+ reqId=/);
    expect(shown().replaceAll(/[\r\n]/g, "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    reader.kill("SIGUSR1");
    await fillLog(url, 500);
    process.kill(pid, "SIGTERM");
    await expectEnd(pid);
  });
});

describe("standard output that is a pipe", () => {
  it("has lines for people if LOG_FORMAT says so", async () => {
    const service = spawnService({ ...(await openSettings()), LOG_FORMAT: "text" });
    const [line] = (await once(createInterface(service.stdout), "line")) as [string];
    expect(line).toMatch(/^\d\d:\d\d:\d\d\.\d{3} (?:info|warn)  ?\S/);
    service.kill("SIGKILL");
    await once(service, "exit");
  });

  it("ends the service when its other end is closed, with the next line of the log", async () => {
    const settings = await openSettings();
    const service = await start(settings);
    service.process.stdout!.destroy();
    await fillLog(service.url, 50).catch(() => {});
    expect(await untilExit(service.process)).toEqual({ code: 0, signal: null });
  });

  it("does not hold the service up while nobody reads it; what is dropped is counted", async () => {
    const settings = await openSettings();
    const service = await start(settings);
    const log = collectLog(service);
    const output = service.process.stdout!;
    output.pause();
    // Over two million bytes.
    let sent = 600;
    await fillLog(service.url, sent, `/${"x".repeat(4_000)}`, 404);
    output.resume();
    const dropped = (): number => {
      const notices = log.filter(({ msg }) => msg === "lines of the log were dropped: nobody read it");
      return notices.reduce((sum, { lines }) => sum + (lines as number), 0);
    };
    await expect
      .poll(async () => {
        await fillLog(service.url, 50);
        sent += 50;
        return dropped();
      })
      .toBeGreaterThan(0);
    const requests = (): number => log.filter(({ reqId }) => reqId !== undefined).length;
    // Some of those of the start may come late.
    await expect.poll(() => requests() + dropped()).toBeGreaterThanOrEqual(sent);
    expect(requests() + dropped()).toBeLessThanOrEqual(sent + 50);
    output.pause();
    await fillLog(service.url, 1_000);
    expect(await service.end("SIGTERM")).toEqual({ code: 0, signal: null });
    output.resume();
  });
});

describe("signals", () => {
  it("SIGHUP stops the service, however often it comes", async () => {
    const settings = await openSettings();
    const service = await start(settings);
    const log = collectLog(service);
    service.process.kill("SIGHUP");
    expect(await service.end("SIGHUP")).toEqual({ code: 0, signal: null });
    expect(log.at(-1)).toMatchObject({ signal: "SIGHUP", msg: "stopping; requests in flight may finish" });
  });

  it("a second SIGTERM ends the service, even while a call of the system does not return", async () => {
    const settings = await openSettings();
    const fifo = join(settings.DATA_DIR, "fifo");
    execFileSync("mkfifo", [fifo]);
    // A thread waits for the other end of the named pipe.
    const preload = `import { readFile } from "node:fs"; readFile(${JSON.stringify(fifo)}, () => {});`;
    const service = await start(settings, preloaded(preload));
    const isStopping = once(service.process.stdout!, "data");
    service.process.kill("SIGTERM");
    await isStopping;
    await expect.poll(() => isLive(service.url)).toBe(false);
    await expect
      .poll(() => {
        service.process.kill("SIGTERM");
        return isRunning(service.process.pid!);
      })
      .toBe(false);
    await expectCleanStart(settings);
  });

  it.each([
    ["does not stop", "AsyncDisposableStack.prototype.disposeAsync = () => new Promise(() => {});"],
    ["has a thread in a call that does not return", `import { open } from "node:fs/promises"; open("FIFO");`],
  ])("a service that %s ends itself", async (_, preload) => {
    const settings = await openSettings();
    const fifo = join(settings.DATA_DIR, "fifo");
    execFileSync("mkfifo", [fifo]);
    const service = await start(settings, preloaded(preload.replace("FIFO", fifo)));
    const log = collectLog(service);
    expect(await service.end("SIGTERM")).toEqual({ code: null, signal: "SIGKILL" });
    expect(log.at(-1)).toMatchObject({ level: 60, msg: "ending at once: the service did not stop in time" });
    await expectCleanStart(settings);
  });
});

describe("an error that nobody handles", () => {
  it("stops the service, which closes what it has open and ends with 1", async () => {
    const settings = await openSettings();
    const service = await start(
      settings,
      preloaded('process.on("SIGWINCH", () => Promise.reject(new Error("first")))'),
    );
    const log = collectLog(service);
    expect(await service.end("SIGWINCH")).toEqual({ code: 1, signal: null });
    expect(log.at(-1)).toMatchObject({
      level: 60,
      err: { message: "first" },
      msg: "stopping after an unhandled error",
    });
    await expectCleanStart(settings);
  });
});

function preloaded(module: string): string[] {
  return commandWith("--import", `data:text/javascript,${encodeURIComponent(module)}`);
}
