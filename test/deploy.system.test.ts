import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { readConfig } from "../src/config/config.ts";
import { Settings } from "../src/config/settings.ts";
import { parseExposition } from "./metrics/exposition.ts";
import { findFreePort } from "./process/free-port.ts";
import { startCommand, startService } from "./process/service.ts";

const run = promisify(execFile);
const top = new URL("../", import.meta.url);
const dockerfile = readFileSync(new URL("deploy/Dockerfile", top), "utf8");
const withYtDlp = readFileSync(new URL("deploy/Dockerfile.yt-dlp", top), "utf8");
const compose = readFileSync(new URL("deploy/compose.yaml", top), "utf8");
const readme = readFileSync(new URL("README.md", top), "utf8");
const operations = readFileSync(new URL("docs/operations.md", top), "utf8");

describe("the image", () => {
  it("is built from files that exist", () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources = ""]) =>
      sources.split(" "),
    );
    expect(copied).toContain("src");
    expect(copied.filter((source) => !existsSync(new URL(source, top)))).toEqual([]);
  });

  it("starts a file that exists", () => {
    const [, command = ""] = /^CMD (\["node", .*\])$/m.exec(dockerfile) ?? [];
    const [, ...flags] = JSON.parse(command) as string[];
    const program = flags.pop();
    expect(program).toBe("src/start.js");
    expect(flags).toEqual(startCommand.slice(1, -1));
    const { scripts } = JSON.parse(readFileSync(new URL("package.json", top), "utf8"));
    expect(scripts.start).toContain(`node $npm_package_config_flags ${program}`);
    expect(scripts.start).toContain(`node %npm_package_config_flags% ${program}`);
    expect(existsSync(new URL(String(program), top))).toBe(true);
  });

  it("sets only variables that the service reads", () => {
    const [, assignments = ""] = /^ENV (.* HOST=.*)$/m.exec(dockerfile) ?? [];
    const names = [...assignments.matchAll(/(\w+)=/g)].map(([, name]) => name);
    expect(names.filter((name) => name !== "PATH")).toEqual(["HOST", "PORT", "DATA_DIR"]);
    expect(Object.keys(Settings.properties)).toEqual(expect.arrayContaining(names.slice(1)));
  });

  it("fills the compile cache with programs that end as the build expects", async () => {
    const [, flag] = /^ENV NODE_OPTIONS=(\S+)$/m.exec(dockerfile) ?? [];
    expect(flag).toBe("--disable-wasm-trap-handler");
    // Node has one cache for each set of V8's flags.
    const [, script = ""] = /^RUN flags=\$\(node -p '(.+)'\)/m.exec(dockerfile) ?? [];
    const { stdout } = await run(process.execPath, ["-p", script], { cwd: top });
    const nodeFlags = stdout.trim().split(" ");
    expect(nodeFlags).toEqual(startCommand.slice(1, -1));
    const programs = dockerfile.matchAll(/(PORT=none )?node \$flags (src\S+) 2>&1 \| grep "([^"]+)"/g);
    const checks = [...programs].map(async ([, port, program = "", text]) => {
      const child = execFile(process.execPath, [...nodeFlags, program], {
        cwd: top,
        env: { NODE_OPTIONS: flag, ...(port === undefined ? {} : { PORT: "none" }) },
      });
      const [stderr] = await Promise.all([readText(child.stderr!), once(child, "exit")]);
      expect(stderr).toContain(text);
      return program;
    });
    expect(await Promise.all(checks)).toEqual([
      "src/start.js",
      "src/engines/native/worker/start-worker.js",
      "src/resolvers/page/reader/start-reader.js",
    ]);
  });

  it("is healthy while the service responds", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "unreel-"));
    const service = await startService({ DATA_DIR: dataDir, CONCURRENCY: "0" });
    expect(await checkHealth(new URL(service.url).port)).toBe(0);
    await service.end("SIGTERM");
    rmSync(dataDir, { recursive: true });
  });

  it("is not healthy while nothing listens", async () => {
    expect(await checkHealth(await findFreePort())).toBe(1);
  });
});

describe("the image with yt-dlp", () => {
  it("is the other image, with a Python", () => {
    const linesOf = (text: string) =>
      text.split("\n").filter((line) => /^(WORKDIR|USER \d+:|VOLUME|EXPOSE|STOP|HEALTH|CMD)/.test(line));
    const final = dockerfile.slice(dockerfile.lastIndexOf("FROM "));
    expect(linesOf(withYtDlp)).toEqual(linesOf(final));
    const [env = ""] = /^ENV .* HOST=.*$/m.exec(final) ?? [];
    expect(withYtDlp).toContain(`\n${env} YTDLP=/usr/local/bin/yt-dlp\n`);
    const copied = [...withYtDlp.matchAll(/^COPY --from=unreel (?:--chown=\S+ )?(\S+) \1$/gm)];
    expect(copied.map(([, path]) => path)).toEqual(["/data", "/app"]);
    expect(Object.keys(Settings.properties)).toContain("YTDLP");
  });

  it("gets yt-dlp as README and the log say", () => {
    const [what = ""] = /"yt-dlp\[[^"]+\]"/.exec(withYtDlp) ?? [];
    expect(readme).toContain(`pipx install ${what}`);
  });

  it("is built as docs/operations.md says", () => {
    expect(operations).toContain("`deploy/Dockerfile.yt-dlp`");
  });
});

describe("the command that adds a key in a container", () => {
  it("works with the PATH of the image and without a shell", async () => {
    const [, service, command = ""] = /^# +docker compose .* exec (\S+) (.*)$/m.exec(compose) ?? [];
    expect(serviceTexts().map(([name]) => name)).toContain(service);
    expect(dockerfile).toContain(`docker exec CONTAINER ${command}\n`);
    const [file = "", ...args] = command.replace("NAME", "anna").split(" ");
    const dataDir = mkdtempSync(join(tmpdir(), "unreel-"));
    const PATH = join(fileURLToPath(top), "node_modules/.bin");
    const { stdout } = await run(file, args, { cwd: top, env: { PATH, DATA_DIR: dataDir } });
    expect(stdout).toMatch(/^unreel_[\w-]+\n$/m);
    rmSync(dataDir, { recursive: true });
  });
});

describe("the compose file", () => {
  it("sets only variables that the service or Postgres reads", () => {
    const names = [...compose.replaceAll(/#.*$/gm, "").matchAll(/\b([A-Z][A-Z_]+): /g)].map(([, name = ""]) => name);
    expect(names).toEqual(expect.arrayContaining(["STORE_URL", "ROLE", "POSTGRES_PASSWORD"]));
    const settings = names.filter((name) => !name.startsWith("POSTGRES_"));
    expect(Object.keys(Settings.properties)).toEqual(expect.arrayContaining(settings));
  });

  it("takes the webhook from deploy/.env; without one it is empty, which is none", () => {
    const [, settings = ""] = /^x-settings: &settings\n((?: .*\n)*)/m.exec(compose) ?? [];
    for (const name of ["WEBHOOK_URL", "WEBHOOK_SECRET"]) {
      expect(settings).toContain(`  ${name}: \${${name}:-}`);
    }
    expect(readConfig({ WEBHOOK_URL: "", WEBHOOK_SECRET: "" }).webhook).toBeUndefined();
  });

  it("publishes a port of its own for each api process, on loopback only", () => {
    const ports = [...compose.matchAll(/^ +ports: \["(.+)"\]/gm)].map(([, port]) => port);
    expect(ports).toEqual(["127.0.0.1:3000:3000", "127.0.0.1:3001:3000"]);
  });

  it("builds the image once and pulls it for no service", () => {
    const services = serviceTexts().filter(([name]) => name !== "postgres");
    const builds = services.filter(([, text]) => text.includes("build:"));
    expect(builds.map(([name]) => name)).toEqual(["api-1"]);
    const pullsNever = services.filter(([, text]) => text.includes("pull_policy: never"));
    expect(pullsNever.map(([name]) => name)).toEqual(["api-2", "worker"]);
  });
});

describe("the unit for systemd", () => {
  const isTestable = spawnSync("systemd-analyze", ["--version"]).status === 0;

  it.skipIf(!isTestable)("has no fault for systemd (needs systemd-analyze)", () => {
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", "deploy/unreel.service"], {
      cwd: top,
      encoding: "utf8",
    });
    expect([stderr, status]).toEqual(["", 0]);
  });

  it("runs the npm of whoever installed Node, whose folder depends on how that was done", () => {
    const unit = readFileSync(new URL("deploy/unreel.service", top), "utf8");
    expect(unit).toContain("\nExecStart=/usr/bin/env npm start --silent\n");
  });
});

describe("the dashboard, the alert rules and the table of series in docs/operations.md", () => {
  const dashboard = JSON.parse(readFileSync(new URL("deploy/dashboard.json", top), "utf8"));
  const alerts = parseYaml(readFileSync(new URL("deploy/alerts.yaml", top), "utf8"));
  const panels = dashboard.panels as Panel[];
  const rules = alerts.groups.flatMap((group) => group.rules);
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  const conditions = rules.map(({ expr }) => expr);
  let found: ReturnType<typeof readFamilies> | undefined;
  const known = () => (found ??= readFamilies());

  it("name only series that the service has", async () => {
    // Prometheus makes `up` itself.
    const names = new Set(["up", ...(await known()).keys()]);
    for (const expression of [...queries, ...conditions]) {
      const used = seriesIn(expression);
      expect(used).not.toEqual([]);
      expect(used.filter((name) => !names.has(name))).toEqual([]);
    }
  });

  it("tell of every series of the service's own", async () => {
    const own = [...(await known()).keys()].filter((name) => name.startsWith("unreel_"));
    const [, table = ""] = /^## Metrics$(.*?)^## /ms.exec(operations) ?? [];
    const documented = [...table.matchAll(/`(unreel_\w+)`/g)].map(([, name = ""]) => name);
    expect(documented.toSorted()).toEqual(own.toSorted());
    const shown = new Set(queries.flatMap(seriesIn));
    expect(own.filter((name) => !shown.has(name))).toEqual([]);
  });

  it("have a title, a place and a query for each panel", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const places = panels.map(({ gridPos: { x, y } }) => `${x} ${y}`);
    expect(new Set(places).size).toBe(panels.length);
    expect(panels.every(({ title, targets }) => title !== "" && targets.length > 0)).toBe(true);
  });

  it("know a worker without a task to run from none by its claims", async () => {
    const [, series = "", method] = /\b(unreel_\w+)_count\{method="(\w+)"\}/.exec(conditions[0]!) ?? [];
    const claims = async ({ url }: MetricsService) => {
      const families = parseExposition(await (await fetch(url)).text());
      const samples = families.get(series)?.samples ?? [];
      const isCount = ({ name, labels }: (typeof samples)[number]) =>
        name.endsWith("_count") && labels["method"] === method;
      return samples.find(isCount)?.value ?? 0;
    };
    const [idle, none] = await Promise.all([startWithMetrics({}), startWithMetrics({ CONCURRENCY: "0" })]);
    await expect.poll(() => claims(idle)).toBeGreaterThan(2);
    expect(await claims(none)).toBe(0);
    await Promise.all([idle.end(), none.end()]);
  });

  it("have five rules, each with a time, a severity and a text", () => {
    expect(rules.map(({ alert }) => alert)).toEqual([
      "UnreelDown",
      "UnreelTasksWait",
      "UnreelTasksFail",
      "UnreelWebhooksWait",
      "UnreelStorage",
    ]);
    for (const { for: time, labels, annotations } of rules) {
      expect(time).toMatch(/^\d+m$/);
      expect(["warning", "critical"]).toContain(labels.severity);
      expect(annotations).toEqual({ summary: expect.any(String), description: expect.any(String) });
    }
  });
});

interface Panel {
  id: number;
  title: string;
  gridPos: { x: number; y: number };
  targets: { expr: string }[];
}

interface Alerts {
  groups: { name: string; rules: AlertRule[] }[];
}

interface AlertRule {
  alert: string;
  expr: string;
  for: string;
  labels: { severity: string };
  annotations: Record<string, string>;
}

/** With the parser that writes the YAML of the API's document. */
function parseYaml(text: string): Alerts {
  const { parse } = createRequire(import.meta.resolve("@fastify/swagger"))("yaml") as {
    parse(yaml: string): Alerts;
  };
  return parse(text);
}

interface MetricsService {
  /** Where it serves its metrics. */
  url: string;
  end(): Promise<void>;
}

/** Starts the real program with a port for metrics. */
async function startWithMetrics(env: Record<string, string>): Promise<MetricsService> {
  const dataDir = mkdtempSync(join(tmpdir(), "unreel-"));
  const port = await findFreePort();
  const service = await startService({ DATA_DIR: dataDir, METRICS_PORT: port, ...env });
  return {
    url: `http://127.0.0.1:${port}/metrics`,
    async end() {
      await service.end("SIGTERM");
      rmSync(dataDir, { recursive: true });
    },
  };
}

/** Returns what the real program serves on its port for metrics. */
async function readFamilies() {
  const { url, end } = await startWithMetrics({});
  const families = parseExposition(await (await fetch(url)).text());
  await end();
  return families;
}

/** Returns the names of metrics in an expression; of a histogram's series, its own. */
function seriesIn(expression: string): string[] {
  const code = expression.replaceAll(/"[^"]*"/g, "").replaceAll(/\b(by|on|group_left) \([^)]*\)/g, "");
  const names = code.match(/\b(up|(unreel|process|nodejs)_\w+)\b/g) ?? [];
  return names.map((name) => name.replace(/_duration_seconds_(bucket|sum|count)$/, "_duration_seconds"));
}

describe("the commands for containers in docs/operations.md", () => {
  const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
  it.runIf(hasOpenssl)("write the password once, for the owner only, to a file that git ignores", async () => {
    const [command = ""] = /^\[ -e deploy\/\.env \].*$/m.exec(operations) ?? [];
    const folder = mkdtempSync(join(tmpdir(), "unreel-"));
    mkdirSync(join(folder, "deploy"));
    const file = join(folder, "deploy/.env");
    await run("sh", ["-c", command], { cwd: folder });
    const first = readFileSync(file, "utf8");
    expect(first).toMatch(/^POSTGRES_PASSWORD=[0-9a-f]{32}\n$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await run("sh", ["-c", command], { cwd: folder });
    expect(readFileSync(file, "utf8")).toBe(first);
    rmSync(folder, { recursive: true });
    expect(readFileSync(new URL(".gitignore", top), "utf8").split("\n")).toContain(".env");
  });

  it("name services that the compose file has", () => {
    const names = serviceTexts().map(([name]) => name);
    const commands = [...operations.matchAll(/^docker compose -f (\S+) up (.*?)(?: {2,}#.*)?$/gm)];
    expect(commands).toHaveLength(4);
    for (const [, file, args = ""] of commands) {
      expect(file).toBe("deploy/compose.yaml");
      const words = args.split(" ").filter((word) => !word.startsWith("-"));
      expect(names).toEqual(expect.arrayContaining(words.map((word) => word.replace(/=.*/, ""))));
    }
  });

  it("give the container an init process and keep the health check in Podman", () => {
    expect(operations).toMatch(/^docker run -d --init .*-p 127\.0\.0\.1:/m);
    expect(operations).toContain("podman build --format docker");
  });
});

/** Returns the name and the text of each service in the compose file. */
function serviceTexts(): [name: string, text: string][] {
  const [, services = ""] = /^services:\n((?: .*\n|\n)*)/m.exec(compose) ?? [];
  return [...services.matchAll(/^ {2}(\S+):\n((?: {4}.*\n)*)/gm)].map(([, name = "", text = ""]) => [name, text]);
}

/** Runs the image's health check for the service on `port`; returns its exit code. */
async function checkHealth(port: string): Promise<number | null> {
  const [, command = ""] = /^HEALTHCHECK .*?CMD (\[.*\])$/m.exec(dockerfile) ?? [];
  const [program, ...args] = JSON.parse(command) as string[];
  expect(program).toBe("node");
  const check = execFile(process.execPath, args, { env: { PORT: port } });
  const [code] = await once(check, "exit");
  return code as number | null;
}

describe("docs/development.md", () => {
  it("says of each dependency what it is for", () => {
    const { dependencies } = JSON.parse(readFileSync(new URL("package.json", top), "utf8"));
    const development = readFileSync(new URL("docs/development.md", top), "utf8");
    const [, table = ""] = development.split("| Dependency");
    const missing = Object.keys(dependencies).filter((name) => !table.includes(`\`${name}\``));
    expect(missing).toEqual([]);
  });
});

describe("the documents", () => {
  const names = ["README.md", ...readdirSync(new URL("docs/", top)).map((name) => `docs/${name}`)];
  const documents = new Map(
    names.filter((name) => name.endsWith(".md")).map((name) => [name, readFileSync(new URL(name, top), "utf8")]),
  );

  it("link to files and headings that exist", () => {
    const broken = [...documents].flatMap(([name, text]) =>
      [...text.matchAll(/\]\(([^)\s]+)\)|src="([^"]+)"/g)]
        .map(([, link, image]) => new URL(link ?? image ?? "", new URL(name, top)))
        .filter((url) => url.protocol === "file:" && !isTarget(url))
        .map((url) => `${name} → ${url.href.slice(top.href.length)}`),
    );
    expect(broken).toEqual([]);
  });

  it("begin with a README of at most 150 lines", () => {
    expect(readme.split("\n").length - 1).toBeLessThanOrEqual(150);
  });

  /** Whether the file exists and, if the URL has a fragment, a heading of it has that name. */
  function isTarget(url: URL): boolean {
    const path = url.href.slice(top.href.length).replace(/#.*/, "");
    if (url.hash === "") return existsSync(new URL(path, top));
    const headings = documents.get(path)?.matchAll(/^#+ (.+)$/gm) ?? [];
    const anchors = [...headings].map(([, text = ""]) => text.toLowerCase().replaceAll(" ", "-"));
    return anchors.includes(url.hash.slice(1));
  }
});
