import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, relative } from "node:path/posix";

/** A module as browsers run it. */
export interface Module {
  /** Where it is served, below the prefix of all assets: a path below src/, or the name of a package and `.mjs`. */
  address: string;
  code: string;
  /** Addresses of the modules that it imports at once, without those that it imports later, by `import()`. */
  imports: readonly string[];
}

/**
 * Reads the module at `path`, below the folder `src`, and all that it leads to. They lose their types and comments, and name
 * packages by their addresses; everything else stays as it is written.
 *
 * @throws Error if a file is missing or is not TypeScript whose types can be stripped.
 */
export function readModules(src: URL, path: string): ReadonlyMap<string, Module> {
  const modules = new Map<string, Module>();
  const pending: Source[] = [{ address: path, url: new URL(path, src) }];
  for (const source of pending) {
    if (modules.has(source.address)) continue;
    const { code, imports, later } = readModule(source, src);
    modules.set(source.address, { address: source.address, code, imports: imports.map(addressOf) });
    pending.push(...imports, ...later);
  }
  return modules;
}

/** Returns the text without comments that have lines of their own, trailing spaces and empty lines. */
export function withoutComments(text: string): string {
  return text
    .replaceAll(/^[ \t]*(?:\/\/.*|\/\*(?:(?!\*\/)[^])*\*\/)[ \t]*$/gm, "")
    .replaceAll(/[ \t]+$/gm, "")
    .replaceAll(/\n{2,}/g, "\n");
}

interface Source {
  address: string;
  url: URL;
}

function readModule(source: Source, src: URL) {
  const text = readFileSync(source.url, "utf8");
  const imports: Source[] = [];
  const later: Source[] = [];
  const script = withoutComments(
    source.address.endsWith(".ts") ? stripTypeScriptTypes(text) : text,
  );
  const code = script.replaceAll(
    /\b((?:from|import)\s*(\(\s*)?)"([^"]+)"/g,
    (_match, before: string, call: string | undefined, specifier: string) => {
      const target = resolve(specifier, source, src);
      (call === undefined ? imports : later).push(target);
      return `${before}"${pathFrom(source.address, target.address)}"`;
    },
  );
  return { code, imports, later };
}

function resolve(specifier: string, from: Source, src: URL): Source {
  if (!specifier.startsWith(".")) {
    return { address: `${specifier}.mjs`, url: new URL(import.meta.resolve(specifier)) };
  }
  const url = new URL(specifier, from.url);
  return { address: relative(src.pathname, url.pathname), url };
}

function pathFrom(address: string, target: string): string {
  const path = relative(dirname(address), target);
  return path.startsWith(".") ? path : `./${path}`;
}

function addressOf({ address }: Source): string {
  return address;
}
