import { dirname, relative } from "node:path/posix";
import { importPattern, type Module } from "./modules.ts";

/**
 * Returns the modules' code as it is served, by path. Each request costs time, so `main` and every module that is
 * imported later, by `import()`, come together with those of this project that they import at once: their code,
 * as it is written, each after what it imports. A module is in the first of these groups that needs it;
 * the others import it from there. Packages stay apart.
 *
 * @throws Error if two modules of a group have the same name for different things, or one imports or exports
 * otherwise than by names.
 */
export function joinModules(
  modules: ReadonlyMap<string, Module>,
  main: string,
): ReadonlyMap<string, string> {
  const bundleOf = new Map<string, string>();
  const groups = new Map<string, Module[]>();
  const add = (path: string, bundle: string): void => {
    const module = modules.get(path);
    if (module === undefined || bundleOf.has(path)) return;
    bundleOf.set(path, bundle);
    for (const target of module.imports) {
      const isPackage = target.endsWith(".mjs");
      add(target, isPackage ? target : bundle);
    }
    const group = groups.get(bundle) ?? [];
    groups.set(bundle, [...group, module]);
  };
  for (const path of [main, ...modules.values().flatMap(({ later }) => later)]) {
    add(path, path);
  }
  return new Map(
    groups
      .entries()
      .map(([bundle, group]) => [
        bundle,
        linkCode(bundle, joinCode(bundle, group, bundleOf), bundleOf),
      ]),
  );
}

/** `import { a, b } from "…";`, as it is written in this project. */
const namedImport = /^import \{([^}]*)\} from "([^"]+)";$/gm;

function joinCode(
  bundle: string,
  group: readonly Module[],
  bundleOf: ReadonlyMap<string, string>,
): string {
  const [only, ...others] = group;
  if (only !== undefined && others.length === 0) return only.code;
  /** What is imported, each name with where it is. */
  const imported = new Map<string, string>();
  const bodies = group.map((module) =>
    module.code.replaceAll(namedImport, (_statement, list: string, path: string) => {
      const from = bundleOf.get(path) ?? path;
      const names = list.split(",").map((name) => name.trim());
      for (const name of names) {
        if (from === bundle || name === "") continue;
        assertSame(name, imported.get(name) ?? from, from);
        imported.set(name, from);
      }
      return "";
    }),
  );
  const other = bodies.join("").match(/^(?:import|export) ?(?:[*"{]|default\b).*/m);
  if (other !== null) throw new Error(`the page's modules cannot be joined: ${other[0]}`);
  assertDistinct(group, imported);
  const statements = Map.groupBy(imported, ([, from]) => from)
    .entries()
    .map(
      ([from, names]) => `import { ${names.map(([name]) => name).join(", ")} } from "${from}";\n`,
    );
  return [...statements, ...bodies].join("");
}

function assertDistinct(group: readonly Module[], imported: ReadonlyMap<string, string>): void {
  const bundleOf = new Map(imported);
  const declaration = /^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)/gm;
  for (const { path, code } of group) {
    for (const [, name = ""] of code.matchAll(declaration)) {
      assertSame(name, bundleOf.get(name) ?? path, path);
      bundleOf.set(name, path);
    }
  }
}

function assertSame(name: string, one: string, other: string): void {
  if (one === other) return;
  throw new Error(`${name} is not the same in ${one} and in ${other}, which are joined`);
}

/** Replaces paths below the prefix by paths relative to the module itself. */
function linkCode(from: string, code: string, bundleOf: ReadonlyMap<string, string>): string {
  return code.replaceAll(importPattern, (_match, before: string, _call, path: string) => {
    const target = relative(dirname(from), bundleOf.get(path) ?? path);
    return `${before}"${target.startsWith(".") ? target : `./${target}`}"`;
  });
}
