import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";

const src = new URL("../src/", import.meta.url).pathname;
const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".ts"),
);
const texts = new Map(files.map((file) => [file, readFileSync(join(src, file), "utf8")]));

/** Lower layers first; a file imports from its own layer or from one before it. */
const layers: readonly (readonly RegExp[])[] = [
  [/^(errors|schema)\.ts$/],
  [/^keyed-mutex\.ts$/],
  [/^page-info\.ts$/],
  [/^task\.ts$/],
  [/^net\//, /^parsers\//],
  [/^manifests\//, /^files\//, /^task-events(\.ts|\/)/],
  [/^remux\//],
  [/^(stores|resolvers|engines)\//],
  [/^info-cache\.ts$/],
  [/^runner(\.ts|\/)/],
  [/^http\//],
  [/^config\.ts$/],
  [/^main\.ts$/, /^watch(\.ts|\/)/],
];

function importsOf(file: string): string[] {
  const specifiers = (texts.get(file) ?? "").matchAll(
    /^(?:import|export)[^;]*? from "(\.[^"]+)"/gms,
  );
  return [...specifiers].map(([, path = ""]) => normalize(join(dirname(file), path)));
}

function layerOf(file: string): number {
  return layers.findIndex((patterns) => patterns.some((pattern) => pattern.test(file)));
}

describe("the source tree", () => {
  it("has a place in the order of layers for every file", () => {
    expect(files.filter((file) => layerOf(file) === -1)).toEqual([]);
  });

  it("imports only downwards", () => {
    const upwards = files.flatMap((file) =>
      importsOf(file)
        .filter((target) => layerOf(target) > layerOf(file))
        .map((target) => `${file} → ${target}`),
    );
    expect(upwards).toEqual([]);
  });

  it("keeps the service and the view of it in the terminal apart", () => {
    const isView = (file: string) => /^watch(\.ts|\/)/.test(file);
    const shared = new Set(["schema.ts", "task.ts"]);
    const crossings = files.flatMap((file) =>
      importsOf(file)
        .filter((target) => isView(file) !== isView(target))
        .filter((target) => !isView(file) || !shared.has(target))
        .map((target) => `${file} → ${target}`),
    );
    expect(crossings).toEqual([]);
  });

  it("has no import cycles", () => {
    const cycles: string[] = [];
    const visit = (file: string, path: readonly string[]): void => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(" → "));
      else for (const target of importsOf(file)) visit(target, [...path, file]);
    };
    for (const file of files) visit(file, []);
    expect(cycles).toEqual([]);
  });

  it("keeps the plug-in families apart", () => {
    const families = new Set(["stores", "resolvers", "engines"]);
    const crossings = files.flatMap((file) => {
      const [family = ""] = file.split("/");
      return importsOf(file)
        .filter((target) => families.has(family) && families.has(target.split("/")[0]!))
        .filter((target) => !target.startsWith(`${family}/`));
    });
    expect(crossings).toEqual([]);
  });

  it("lets only main.ts import registries and config", () => {
    const importers = files.filter((file) =>
      importsOf(file).some((target) => target === "config.ts" || target.endsWith("registry.ts")),
    );
    expect(importers).toEqual(["main.ts"]);
  });

  it("reads the environment in config.ts alone", () => {
    const readers = files.filter((file) => /process\s*\.\s*env/.test(texts.get(file) ?? ""));
    expect(readers).toEqual(["config.ts"]);
  });

  it("names no file or folder after nothing", () => {
    const vague = /(^|\/)(utils?|helpers?|misc|common|shared|lib)(\.ts$|\/)/;
    expect(files.filter((file) => vague.test(file))).toEqual([]);
  });

  it("has no file over 250 lines", () => {
    const lines = files.map((file) => ({ file, count: texts.get(file)!.split("\n").length - 1 }));
    expect(lines.filter(({ count }) => count > 250)).toEqual([]);
  });
});
