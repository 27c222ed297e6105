import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { makeFolder } from "./folder.ts";

const src = join(import.meta.dirname, "../src");
const files = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.(ts|js)$/.test(name))
  .toSorted();
const texts = new Map(files.map((file) => [file, readFileSync(join(src, file), "utf8")]));

const architecture = readFileSync(new URL("../docs/architecture.md", import.meta.url), "utf8");

/** Rooms of the top floor as docs/architecture.md draws them, lower layers first; a room imports only from layers before its own. */
const layers: readonly (readonly string[])[] = (
  /^```text\n(.*?)^```$/ms.exec(architecture)?.[1]?.trimEnd().split("\n") ?? []
)
  .map((line) => line.slice(0, 44).trim().split(/ +/))
  .toReversed();

/** The folder, or the file without its ending, that has the path on the top floor. */
const roomOf = (path: string): string => path.split("/")[0]!.replace(/\.[jt]s$/, "");

/** What the file imports or loads: `from "…"`, `import "…"`, `import("…")` and a worker's `new URL("…")`. */
function specifiersOf(file: string): string[] {
  const text = texts.get(file) ?? "";
  const statements = text.matchAll(/^(?:import|export)\b(?:[^;"]*? from)? ?"([^"]+)"/gms);
  const expressions = text.matchAll(/\bimport\("([^"]+)"\)|new URL\("(\.[^"]+\.[jt]s)"/g);
  return [...statements, ...expressions].map(([, name, url]) => name ?? url ?? "");
}

/** The files of this project that `file` imports, from src/. */
function importsOf(file: string): string[] {
  return specifiersOf(file)
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => normalize(join(dirname(file), specifier)));
}

/** All imports that break a rule, as `file → target`. */
function importsWhere(breaks: (file: string, target: string) => boolean): string[] {
  return files.flatMap((file) =>
    importsOf(file)
      .filter((target) => breaks(file, target))
      .map((target) => `${file} → ${target}`),
  );
}

function layerOf(file: string): number {
  return layers.findIndex((rooms) => rooms.includes(roomOf(file)));
}

/** Every cycle of a graph, as the path that leads round it. */
function cyclesIn(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const cycles = new Set<string>();
  const done = new Set<string>();
  const visit = (node: string, path: readonly string[]): void => {
    if (path.includes(node)) cycles.add([...path.slice(path.indexOf(node)), node].join(" → "));
    else if (!done.has(node)) {
      for (const target of graph.get(node) ?? []) visit(target, [...path, node]);
      done.add(node);
    }
  };
  for (const node of graph.keys()) visit(node, []);
  return [...cycles];
}

/** Returns which siblings import each other, at every level of the tree. */
function siblingGraph(): Map<string, Set<string>> {
  const graph = new Map<string, Set<string>>();
  for (const file of files) {
    for (const target of importsOf(file)) {
      const [from, to] = [file.split("/"), target.split("/")];
      const level = from.findIndex((name, i) => name !== to[i]);
      const [one, other] = [from, to].map((path) => path.slice(0, level + 1).join("/"));
      if (one === undefined || other === undefined || one === other) continue;
      graph.set(one, (graph.get(one) ?? new Set()).add(other));
    }
  }
  return graph;
}

describe("the source tree", () => {
  it("is read whole: imports of every kind are found", () => {
    const programs = ["main.ts", "system/bundle-programs.ts"];
    expect(importsOf("start.js").toSorted()).toEqual([...programs, "system/load-program.js", "system/memory.ts"]);
    expect(importsOf("engines/native/worker/start-worker.js")).toContain("engines/native/worker/worker.ts");
    expect(importsOf("engines/native/worker/worker-process.ts")).toContain("engines/native/worker/start-worker.js");
    expect(importsOf("http/app.ts")).toContain("http/routes/tasks.ts");
    const others = new Set(files.flatMap(importsOf).filter((target) => !texts.has(target)));
    expect([...others]).toEqual(["../package.json"]);
  });

  it("is drawn in docs/architecture.md, every room of the top floor once", () => {
    expect(layers.flat().toSorted()).toEqual([...new Set(files.map(roomOf))].toSorted());
  });

  it("imports only downwards", () => {
    const isUpward = (file: string, target: string) =>
      roomOf(file) !== roomOf(target) && layerOf(target) >= layerOf(file);
    expect(importsWhere(isUpward)).toEqual([]);
  });

  it("has only the programs and folders on the top floor, few enough to see at a glance", () => {
    expect(files.filter((file) => !file.includes("/"))).toEqual(["main.ts", "services.ts", "start.js"]);
    const rooms = new Set(files.map(roomOf));
    const arrows = new Set(
      files.flatMap((file) =>
        importsOf(file)
          .filter((target) => texts.has(target) && roomOf(target) !== roomOf(file))
          .map((target) => `${roomOf(file)} → ${roomOf(target)}`),
      ),
    );
    expect(rooms.size).toBeLessThanOrEqual(26);
    expect(arrows.size).toBeLessThanOrEqual(95);
  });

  it("keeps the service and its views, in the terminal and in a browser, apart", () => {
    const isView = (file: string) => /^(cli\/watch\.ts|watch\/|web\/)/.test(file);
    const shared = new Set([
      "model/collection.ts",
      "model/entry.ts",
      "model/errors.ts",
      "feed/feed-client.ts",
      "model/file-warnings.ts",
      "model/format-ranking.ts",
      "model/format-sizes.ts",
      "model/page-info.ts",
      "model/progress.ts",
      "model/schema.ts",
      "model/task.ts",
    ]);
    const crossings = importsWhere(
      (file, target) => isView(file) !== isView(target) && !(isView(file) && shared.has(target)),
    );
    expect(crossings).toEqual([]);
  });

  it("gives the page only its own modules, types of what clients see, and what it shares", () => {
    const pattern = /^import type [^;]*? from "(\.[^"]+)"/gms;
    const typesOf = (file: string) =>
      [...(texts.get(file) ?? "").matchAll(pattern)].map(([, name]) => normalize(join(dirname(file), name ?? "")));
    const seen = new Set(
      "task collection entry page-info progress errors file-warnings".split(" ").map((name) => `model/${name}.ts`),
    );
    const crossings = importsWhere(
      (file, target) =>
        file.startsWith("web/") &&
        !target.startsWith("web/") &&
        target !== "feed/feed-client.ts" &&
        target !== "model/format-ranking.ts" &&
        target !== "model/format-sizes.ts" &&
        !(seen.has(target) && typesOf(file).includes(target)),
    );
    expect(crossings).toEqual([]);
  });

  it("has no import cycles between files", () => {
    const graph = new Map(files.map((file) => [file, new Set(importsOf(file))]));
    expect(cyclesIn(graph)).toEqual([]);
  });

  it("has no import cycles between sibling folders at any level", () => {
    expect(cyclesIn(siblingGraph())).toEqual([]);
  });

  it("keeps the plug-in families apart", () => {
    const familyOf = (file: string) => /^(stores|resolvers|engines)\//.exec(file)?.[1];
    const crossings = importsWhere((file, target) => {
      const [one, other] = [familyOf(file), familyOf(target)];
      return one !== undefined && other !== undefined && one !== other;
    });
    expect(crossings).toEqual([]);
  });

  it("lets a browser import what clients see: it leads to no module of Node", () => {
    const reached = new Set<string>();
    const visit = (file: string): void => {
      if (reached.has(file)) return;
      reached.add(file);
      for (const target of importsOf(file)) visit(target);
    };
    for (const file of files.filter((name) => name.startsWith("model/"))) visit(file);
    const packages = [...reached]
      .flatMap(specifiersOf)
      .filter((specifier) => !/^(\.|@sinclair\/typebox(\/|$))/.test(specifier));
    expect(reached).toContain("model/schema.ts");
    expect(packages).toEqual([]);
    const globals = /\b(process|Buffer|__dirname|require)\b\s*[.([]/;
    expect([...reached].filter((file) => globals.test(texts.get(file) ?? ""))).toEqual([]);
  });

  it("lets only the programs import registries and config", () => {
    const importers = files.filter((file) =>
      importsOf(file).some((target) => target === "config/config.ts" || target.endsWith("registry.ts")),
    );
    expect(importers).toEqual(["cli/key.ts", "cli/library.ts", "main.ts", "services.ts"]);
  });

  it("reads the environment in config/ alone; cli/watch.ts its key, start.js sets the size of Node's thread pool", () => {
    const pattern = /process\??\.env\b|process\["env"\]|\benv\b[^;]*from "node:process"/;
    const readers = files.filter((file) => pattern.test(texts.get(file) ?? ""));
    expect(readers).toEqual(["cli/watch.ts", "config/config.ts", "start.js"]);
    expect(texts.get("cli/watch.ts")?.match(/.*process\.env.*/g)).toEqual(["const { UNREEL_KEY: key } = process.env;"]);
    expect(texts.get("start.js")?.match(/process\.env.*/g)).toEqual(['process.env["UV_THREADPOOL_SIZE"] ??= "32";']);
  });

  it("has every file that docs/architecture.md names", () => {
    const names = [...architecture.matchAll(/`((?:[\w-]+\/)*[\w-]+\.[jt]s)`/g)].map(([, name]) => name);
    expect(names).toContain("stores/store.ts");
    const ends = names.filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)));
    expect(ends).toEqual([]);
  });

  it("names no file or folder after nothing", () => {
    const vague = /(^|\/)(values|utils?|helpers?|misc|common|shared|lib)(\.[jt]s$|\/)/;
    expect(files.filter((file) => vague.test(file))).toEqual([]);
  });

  it("is at most three folders deep, and no import climbs more than three", () => {
    expect(files.filter((file) => file.split("/").length > 4)).toEqual([]);
    const climbs = files.flatMap(specifiersOf).filter((name) => name.startsWith("../../../../"));
    expect(climbs).toEqual([]);
  });

  it("has at most 16 files directly in a folder", () => {
    const counts = new Map<string, number>();
    for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count > 16)).toEqual([]);
  });

  it("has no function over 60 lines", () => {
    const config = join(makeFolder(), "oxlintrc.json");
    const rules = { "max-lines-per-function": ["warn", { max: 60 }] };
    writeFileSync(config, JSON.stringify({ plugins: [], categories: { correctness: "off" }, rules }));
    const oxlint = createRequire(import.meta.url).resolve("oxlint/package.json");
    const args = [join(dirname(oxlint), "bin", "oxlint"), "-c", config, "--format=json", src];
    const { diagnostics } = JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" }));
    const long = (diagnostics as { filename: string; message: string }[]).map(
      ({ filename, message }) => `${filename}: ${message}`,
    );
    expect(long).toEqual([]);
  });

  it("has no file over 250 lines", () => {
    const lines = files.map((file) => ({ file, count: texts.get(file)!.split("\n").length - 1 }));
    expect(lines.filter(({ count }) => count > 250)).toEqual([]);
  });
});

const testFolder = import.meta.dirname;
const testFiles = readdirSync(testFolder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
const testTexts = new Map(testFiles.map((file) => [file, readFileSync(join(testFolder, file), "utf8")]));

/** Files below test/ that wait for time to pass, and why they cannot wait for what happens instead. */
const sleepers: Record<string, string> = {
  "engines/worker-limits.test.ts": "polls processes of the machine",
  "media/server.ts": "responds as late as a fault says",
  "media/site.ts": "sends as slowly as a site does",
  "net/timeouts.test.ts": "a reader that takes its time",
  "process/database-outage.system.test.ts": "an outage that lasts",
  "process/webhook-crash.ts": "polls a store that another process changes",
  "process/webhook-outage.ts": "an outage that lasts",
  "resolvers/ytdlp-formats.test.ts": "a manifest that comes too late",
  "resolvers/ytdlp/faults.system.test.ts": "polls the processes of the machine",
  "stores/postgres/opening.system.test.ts": "a statement that takes long",
  "webhooks/webhooks.test.ts": "a message that must not come",
};

describe("the tests", () => {
  it("wait for what happens, not for time to pass", () => {
    const sleep = /\bsetTimeout\b[^;]* from "node:timers\/promises"|=> setTimeout\(resolve\b/;
    const found = testFiles.filter((file) => sleep.test(testTexts.get(file)!));
    expect(found.filter((file) => !(file in sleepers))).toEqual([]);
  });

  it("find files wherever the repository lies: a path is not the encoded one of a URL", () => {
    const encoded = /\bimport\.meta\.url\)\.pathname/;
    expect(testFiles.filter((file) => encoded.test(testTexts.get(file)!))).toEqual([]);
    expect(files.filter((file) => encoded.test(texts.get(file)!))).toEqual([]);
  });

  it("wait for longer than a busy machine takes", () => {
    // The default of these is a second.
    const short = testFiles.filter((file) =>
      [...testTexts.get(file)!.matchAll(/\bvi\.wait(?:Until|For)\([^;]*/g)].some(
        ([call]) => !/\b(?:[6-9]\d|\d{3})_000\b/.test(call),
      ),
    );
    expect(short).toEqual([]);
    // Nor is a limit of a second or of half a minute needed where nothing but the patience of the test ends.
    const hasty = testFiles.filter((file) => /\btimeout: (?:[1-5]?\d_000|\d{1,3})\b/.test(testTexts.get(file)!));
    expect(hasty).toEqual([]);
    const impatient = testFiles.filter((file) => /createNativeEngine\(\{[^}]*TimeoutMs/.test(testTexts.get(file)!));
    expect(impatient).toEqual([]);
  });

  it("of `npm test` start the program in few files, and no browser", () => {
    const testImportsOf = (file: string): string[] =>
      [...(testTexts.get(file) ?? "").matchAll(/ from "(\.[^"]+)"/g)].map(([, name = ""]) =>
        normalize(join(dirname(file), name)),
      );
    const reaches = (file: string, seen = new Set<string>()): boolean =>
      /^(process\/service|web\/browser)\.ts$/.test(file) ||
      testImportsOf(file).some((next) => !seen.has(next) && reaches(next, seen.add(next)));
    const quick = testFiles.filter((file) => file.endsWith(".test.ts") && !file.endsWith(".system.test.ts"));
    expect(reaches("process/main.system.test.ts") && reaches("web/page.system.test.ts")).toBe(true);
    expect(quick.filter((file) => reaches(file)).toSorted()).toEqual([
      "process/download.test.ts",
      "process/kill.test.ts",
    ]);
  });
});
