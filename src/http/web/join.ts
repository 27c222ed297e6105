import { dirname, relative } from "node:path/posix";
import { importPattern, type Module } from "./modules.ts";

/**
 * Returns the modules' code as it is served, by address. Each request costs time, so `main` and every module that is
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
  const homes = new Map<string, string>();
  const groups = new Map<string, Module[]>();
  const add = (address: string, home: string): void => {
    const module = modules.get(address);
    if (module === undefined || homes.has(address)) return;
    homes.set(address, home);
    for (const target of module.imports) {
      const isPackage = target.endsWith(".mjs");
      add(target, isPackage ? target : home);
    }
    const group = groups.get(home) ?? [];
    groups.set(home, [...group, module]);
  };
  for (const address of [main, ...modules.values().flatMap(({ later }) => later)]) {
    add(address, address);
  }
  return new Map(
    groups
      .entries()
      .map(([home, group]) => [home, linkCode(home, joinCode(home, group, homes), homes)]),
  );
}

/** `import { a, b } from "…";`, as it is written in this project. */
const namedImport = /^import \{([^}]*)\} from "([^"]+)";$/gm;

function joinCode(
  home: string,
  group: readonly Module[],
  homes: ReadonlyMap<string, string>,
): string {
  const [only, ...others] = group;
  if (only !== undefined && others.length === 0) return only.code;
  /** What is imported, each name with where it is. */
  const imported = new Map<string, string>();
  const bodies = group.map((module) =>
    module.code.replaceAll(namedImport, (_statement, list: string, address: string) => {
      const from = homes.get(address) ?? address;
      const names = list.split(",").map((name) => name.trim());
      for (const name of names) {
        if (from === home || name === "") continue;
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
  const homes = new Map(imported);
  const declaration = /^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)/gm;
  for (const { address, code } of group) {
    for (const [, name = ""] of code.matchAll(declaration)) {
      assertSame(name, homes.get(name) ?? address, address);
      homes.set(name, address);
    }
  }
}

function assertSame(name: string, one: string, other: string): void {
  if (one === other) return;
  throw new Error(`${name} is not the same in ${one} and in ${other}, which are joined`);
}

/** Replaces addresses by paths from the module itself to where they are served. */
function linkCode(from: string, code: string, homes: ReadonlyMap<string, string>): string {
  return code.replaceAll(importPattern, (_match, before: string, _call, address: string) => {
    const path = relative(dirname(from), homes.get(address) ?? address);
    return `${before}"${path.startsWith(".") ? path : `./${path}`}"`;
  });
}
