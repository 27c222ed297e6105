import { type ChildProcess, spawn } from "node:child_process";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { getPriority, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { childrenOf, isRunning } from "../../process/child-processes.ts";
import { type Canary, never, openCanary, openHarness, type YtDlpHarness } from "./harness.ts";
import { createVariant, installed, missing, pythonPath, type Variant } from "./installed.ts";
import { type KernelPart, pythonWithout } from "./kernels.ts";

/** Code of a bad release: it runs when yt-dlp is loaded, and wants to stay whatever happens to the service. */
const staying = `
import os, signal, time
import ctypes
libc = ctypes.CDLL(None)
__all__ = []
libc.prctl(1, 0, 0, 0, 0)
for each in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT): signal.signal(each, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        libc.setsid()
        libc.setpgid(0, 0)
        if os.fork() == 0: time.sleep(600)
        time.sleep(600)
`;

/** So does this, which wants the service to open no more files. */
const limiting = `
try:
    import resource
    resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (1, 1))
except OSError:
    pass
`;

/** By hand: what the rest of the sandbox stops without this part of the kernel; the tests then say which ways are out. */
const withoutPart = process.env["WITHOUT"] as KernelPart | undefined;

describe.skipIf(installed === undefined || process.platform !== "linux")(
  `code that has taken over yt-dlp's process${missing}`,
  () => {
    let folder: string;
    let canary: Canary;
    let datagrams: Socket;
    let victim: ChildProcess;
    let variant: Variant;
    let harness: YtDlpHarness;
    const sockets: Server[] = [];
    let received = 0;

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "ways-out-"));
      for (const name of ["secret", "other"]) writeFileSync(join(folder, name), "secret", { mode: 0o600 });
      canary = await openCanary();
      datagrams = createSocket("udp4").bind(canary.port, "127.0.0.2");
      datagrams.on("message", () => (received += 1));
      await once(datagrams, "listening");
      const abstract = `unreel-${process.pid}`;
      for (const path of [join(folder, "keys.sock"), `\0${abstract}`]) {
        const server = createServer((socket) => {
          received += 1;
          socket.destroy();
        }).listen(path);
        sockets.push(server);
        await once(server, "listening");
      }
      victim = spawn("sleep", ["600"], { env: { PATH: process.env["PATH"], SECRET: "secret" }, stdio: "ignore" });
      const given = { HOST: "127.0.0.2", PORT: canary.port, FOLDER: folder, ABSTRACT: abstract, VICTIM: victim.pid };
      const lines = Object.entries({ ...given, NODE: process.execPath }).map(
        ([name, value]) => `${name} = ${JSON.stringify(value)}\n`,
      );
      const source = readFileSync(new URL("ways-out.py", import.meta.url), "utf8");
      variant = createVariant({
        ...(withoutPart && { interpreter: writeInterpreter(withoutPart) }),
        extractors: { ways_out: lines.join("") + limiting + source },
      });
      harness = await openHarness({ path: variant.path, timeoutMs: 60_000 });
    });

    afterAll(async () => {
      await harness[Symbol.asyncDispose]();
      await canary[Symbol.asyncDispose]();
      variant[Symbol.dispose]();
      victim.kill("SIGKILL");
      datagrams.close();
      for (const socket of sockets) socket.close();
      rmSync(folder, { recursive: true });
    });

    function writeInterpreter(part: KernelPart): string {
      const path = join(mkdtempSync(join(folder, "python-")), "bin");
      mkdirSync(path);
      writeFileSync(join(path, "python3"), pythonWithout(pythonPath(), part), { mode: 0o755 });
      return join(path, "python3");
    }

    /** Tries the ways from one number to another; returns those that are out. */
    async function tryWays(from: number, to: number): Promise<{ out: string[]; count: number }> {
      const info = await harness.ytDlp.extract(new URL(`http://ways-out.example/${from}-${to}`), { signal: never });
      const { title, description } = info as { title: string; description: string };
      return { out: JSON.parse(title) as string[], count: Number(description) };
    }

    it.each(["SIGKILL", "SIGTERM"] as const)("does not outlive a service that gets %s", async (signal) => {
      using bad = createVariant({ extractors: { staying } });
      const program = join(import.meta.dirname, "service.ts");
      const env = { PATH: process.env["PATH"], YTDLP: bad.path };
      const service = spawn(process.execPath, [program, "http://127.0.0.1:9/"], {
        env,
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(service.stdout, "data");
      const left = () => findProcesses(bad.path);
      // The server, two that it has started, and two of these.
      expect(left().length).toBeGreaterThanOrEqual(5);
      service.kill(signal);
      await vi.waitUntil(() => left().length === 0, 60_000);
    });

    it("finds nothing of the service's environment in its own", () => {
      const programs = new Set(["fork_server.py", "warden.py"]);
      const pids = childrenOf(process.pid).filter((pid) =>
        readCommand(pid).some((argument) => programs.has(basename(argument))),
      );
      expect(pids).toHaveLength(2);
      for (const pid of pids) {
        expect(readEnvironment(pid).filter((variable) => !variable.startsWith("PATH="))).toEqual([]);
      }
    });

    it("leaves the limits of other processes as they are while it is loaded", async () => {
      await tryWays(0, 0);
      const openFiles = (pid: number | string) =>
        /^Max open files .*$/m.exec(readFileSync(`/proc/${pid}/limits`, "utf8"))?.[0];
      expect(openFiles(victim.pid!)).toBe(openFiles("self"));
    });

    it("yields processor time to the service", () => {
      const server = childrenOf(process.pid).find((pid) =>
        readCommand(pid).some((argument) => basename(argument) === "fork_server.py"),
      );
      expect(getPriority(server)).toBeGreaterThan(getPriority());
    });

    it("gets out by none of over 120 ways", { timeout: 300_000 }, async () => {
      const files = () => readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode]);
      const before = files();
      const { count } = await tryWays(0, 0);
      expect(count).toBeGreaterThan(120);
      const out: string[] = [];
      // One by one, as the first that is out could end the process.
      for (let way = 0; way < count; way += 1) {
        out.push(
          ...(await tryWays(way, way + 1).catch((error: unknown) => ({ out: [`${way}: ${String(error)}`] }))).out,
        );
      }
      expect(out).toEqual([]);
      expect(files()).toEqual(before);
      expect(readFileSync(join(folder, "secret"), "utf8")).toBe("secret");
      expect([canary.connections, received]).toEqual([0, 0]);
      expect(isRunning(victim.pid!)).toBe(true);
    });
  },
);

/** Returns the processes whose command has this argument. */
function findProcesses(argument: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && isRunning(pid) && readCommand(pid).includes(argument));
}

const readCommand = (pid: number) => readList(`/proc/${pid}/cmdline`);
/** Empty, too, if this user may not read it. */
const readEnvironment = (pid: number) => readList(`/proc/${pid}/environ`);

function readList(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\0").filter(Boolean);
  } catch {
    return [];
  }
}
