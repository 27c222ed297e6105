import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { joinModules } from "./join.ts";
import { type Module, readModules, withoutComments } from "./modules.ts";
import { createWebFile, type WebFile } from "./web-file.ts";

export interface WebFiles {
  page: WebFile;
  /** The web app manifest, with which the page can be installed and shared to. */
  manifest: WebFile;
  /** What both lead to, by path. A path contains a hash of all assets, so what it names never changes. */
  assets: ReadonlyMap<string, WebFile>;
}

/**
 * Reads the files of `web/` in the folder `src`, by default that of the service, and the packages that its modules
 * import. It takes tens of milliseconds and some memory, as the types are stripped here.
 */
export function readWebFiles(src = new URL("../../", import.meta.url)): WebFiles {
  const read = (name: string) => readFileSync(new URL(`web/${name}`, src), "utf8");
  const modules = readModules(src, main);
  const texts = new Map(joinModules(modules, main));
  texts
    .set("web/style.css", withoutComments(read("style.css")))
    .set("web/icon.svg", read("icon.svg"));
  const hash = createHash("sha256")
    .update(JSON.stringify([...texts]))
    .digest("base64url");
  const prefix = `assets/${hash.slice(0, 16)}/`;
  /** Puts the paths of assets where their names are. */
  const locate = (text: string) =>
    text.replaceAll(/"([\w.-]+)"/g, (quoted, name: string) =>
      texts.has(`web/${name}`) ? `"${prefix}web/${name}"` : quoted,
    );
  const page = read("index.html").replace(/^.*<script /m, `${preloads(modules, prefix)}$&`);
  return {
    page: createWebFile("text/html; charset=utf-8", locate(page)),
    manifest: createWebFile("application/manifest+json", locate(read("manifest.webmanifest"))),
    assets: new Map(
      texts.entries().map(([path, text]) => [prefix + path, createWebFile(typeOf(path), text)]),
    ),
  };
}

const main = "web/main.ts";

/** Returns the tags with which browsers fetch the packages of the first visit together with the page's own module. */
function preloads(modules: ReadonlyMap<string, Module>, prefix: string): string {
  const paths = new Set([main]);
  for (const path of paths) {
    for (const target of modules.get(path)?.imports ?? []) paths.add(target);
  }
  return [...paths]
    .filter((path) => path.endsWith(".mjs"))
    .map((path) => `<link rel="modulepreload" href="${prefix}${path}" />\n`)
    .join("");
}

function typeOf(path: string): string {
  if (path.endsWith(".css")) return "text/css; charset=utf-8";
  return path.endsWith(".svg") ? "image/svg+xml" : "text/javascript; charset=utf-8";
}
