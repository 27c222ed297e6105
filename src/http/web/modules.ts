import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { relative } from "node:path/posix";

/** A module of the page, without types and comments, that names what it imports by paths. */
export interface Module {
  /** Where it is served, below the prefix of all assets: a path below src/, or the name of a package and `.mjs`. */
  path: string;
  code: string;
  /** Paths of the modules that it imports at once. */
  imports: readonly string[];
  /** Paths of the modules that it imports later, by `import()`. */
  later: readonly string[];
}

/** What imports a module: `from "…"`, `import "…"` and `import("…")`. */
export const importPattern = /\b((?:from|import)\s*(\(\s*)?)"([^"]+)"/g;

/**
 * Reads the module at `path`, below the folder `src`, and all that it leads to.
 *
 * @throws Error if a file is missing or is not TypeScript whose types can be stripped.
 */
export function readModules(src: URL, path: string): ReadonlyMap<string, Module> {
  const modules = new Map<string, Module>();
  const pending: Source[] = [{ path, url: new URL(path, src) }];
  for (const source of pending) {
    if (modules.has(source.path)) continue;
    const imports: string[] = [];
    const later: string[] = [];
    const code = readCode(source).replaceAll(importPattern, (_match, before, call, name) => {
      const target = resolve(name, source, src);
      pending.push(target);
      (call === undefined ? imports : later).push(target.path);
      return `${before}"${target.path}"`;
    });
    modules.set(source.path, { path: source.path, code, imports, later });
  }
  return modules;
}

/** Returns the text without source map, comments that have lines of their own, trailing spaces and empty lines. */
export function withoutComments(text: string): string {
  return text
    .replace(/\/\/# sourceMappingURL=\S+\s*$/, "")
    .replaceAll(/^[ \t]*(?:\/\/.*|\/\*(?:(?!\*\/)[^])*\*\/)[ \t]*$/gm, "")
    .replaceAll(/[ \t]+$/gm, "")
    .replaceAll(/\n{2,}/g, "\n");
}

interface Source {
  path: string;
  url: URL;
}

function readCode({ path, url }: Source): string {
  const text = readFileSync(url, "utf8");
  return withoutComments(path.endsWith(".ts") ? stripTypeScriptTypes(text) : text);
}

function resolve(name: string, from: Source, src: URL): Source {
  if (!name.startsWith(".")) {
    return { path: `${name}.mjs`, url: new URL(import.meta.resolve(name)) };
  }
  const url = new URL(name, from.url);
  return { path: relative(src.pathname, url.pathname), url };
}
