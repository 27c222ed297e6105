import { dirname, relative } from "node:path/posix";
import { importPattern, type Module } from "./modules.ts";

/**
 * Returns the modules' code as it is served, by address. Those of this project that `main` imports at once are one
 * module, in its place, as each request costs time: their code, as it is written, each after what it imports.
 * The others stay apart, and import from it.
 *
 * @throws Error if two of the joined modules declare the same name, or one imports otherwise than by names.
 */
export function joinModules(
  modules: ReadonlyMap<string, Module>,
  main: string,
): ReadonlyMap<string, string> {
  const joined = new Map<string, Module>();
  const add = (address: string): void => {
    const module = modules.get(address);
    if (module === undefined || joined.has(address) || isPackage(address)) return;
    for (const target of module.imports) add(target);
    joined.set(address, module);
  };
  add(main);
  const codes = new Map(modules.values().map(({ address, code }) => [address, code]));
  for (const address of joined.keys()) codes.delete(address);
  codes.set(main, joinCode([...joined.values()]));
  const homeOf = (address: string): string => (joined.has(address) ? main : address);
  for (const [address, code] of codes) codes.set(address, linkCode(address, code, homeOf));
  return codes;
}

function isPackage(address: string): boolean {
  return address.endsWith(".mjs");
}

/** `import { a, b } from "…";`, as it is written in this project. */
const namedImport = /^import \{([^}]*)\} from "([^"]+)";$/gm;

function joinCode(modules: readonly Module[]): string {
  assertDistinct(modules);
  /** What is imported from each package. */
  const names = new Map<string, Set<string>>();
  const bodies = modules.map(({ code }) =>
    code.replaceAll(namedImport, (_statement, list: string, address: string) => {
      if (!isPackage(address)) return "";
      const known = names.get(address) ?? new Set();
      names.set(address, known);
      for (const name of list.split(",")) if (name.trim() !== "") known.add(name.trim());
      return "";
    }),
  );
  const other = bodies.join("").match(/^(?:import|export) ?(?:[*"{]|default\b).*/m);
  if (other !== null) throw new Error(`the page's modules cannot be joined: ${other[0]}`);
  const imports = [...names].map(
    ([address, list]) => `import { ${[...list].join(", ")} } from "${address}";\n`,
  );
  return [...imports, ...bodies].join("");
}

function assertDistinct(modules: readonly Module[]): void {
  const homes = new Map<string, string>();
  const declaration = /^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)/gm;
  for (const { address, code } of modules) {
    for (const [, name = ""] of code.matchAll(declaration)) {
      const other = homes.get(name);
      if (other !== undefined) {
        throw new Error(`${other} and ${address}, which are joined, both declare ${name}`);
      }
      homes.set(name, address);
    }
  }
}

/** Replaces addresses by paths from the module itself. */
function linkCode(from: string, code: string, homeOf: (address: string) => string): string {
  return code.replaceAll(importPattern, (_match, before: string, _call, address: string) => {
    const path = relative(dirname(from), homeOf(address));
    return `${before}"${path.startsWith(".") ? path : `./${path}`}"`;
  });
}
