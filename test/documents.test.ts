import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fileWarnings } from "../src/model/file-warnings.ts";
import { TaskOptions } from "../src/model/task.ts";
import { withApp } from "./http/failing-app.ts";

const root = new URL("../", import.meta.url);

describe("the documents", () => {
  it("say of each warning when it is given, in docs/api.md and in the OpenAPI document", async () => {
    const rows = [...read("docs/api.md").matchAll(/^\| `([a-z_]+)` +\| (.+?) +\|$/gm)];
    const documented = new Map(rows.map(([, code, when]) => [code, when]));
    const { body } = await withApp({}, async (app) => app.inject("/openapi.json"));
    for (const [code, when] of Object.entries(fileWarnings)) {
      expect(documented.get(code)).toBe(when);
      expect(body).toContain(`\`${code}\`: ${when}`);
    }
  });

  it("have a row for each option of a task", () => {
    const [, section = ""] = /^## Options$([^]*?)^##/m.exec(read("docs/api.md")) ?? [];
    const rows = [...section.matchAll(/^\| `([a-z_]+)` /gm)].map(([, name]) => name);
    expect(new Set(rows)).toEqual(new Set(Object.keys(TaskOptions.properties)));
  });

  it("link only to files and headings that exist", () => {
    const documents = [
      "README.md",
      "bench/README.md",
      ...readdirSync(new URL("docs/", root)).map((name) => `docs/${name}`),
    ];
    for (const path of documents.filter((name) => name.endsWith(".md"))) {
      for (const [, link = ""] of read(path).matchAll(/\]\(((?!https?:)[^)\s]+)\)/g)) {
        const target = new URL(link, new URL(path, root));
        expect(existsSync(target), `${path} links to ${link}`).toBe(true);
        if (target.hash !== "") expect(headingsOf(target), `${path} links to ${link}`).toContain(target.hash);
      }
    }
  });

  it("give a reason for each dependency", () => {
    const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<string, object>;
    const [, table = ""] = /^## Dependencies$([^]*)/m.exec(read("docs/development.md")) ?? [];
    const named = [...table.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    expect(named).toEqual(expect.arrayContaining(Object.keys({ ...dependencies, ...devDependencies })));
  });

  it("name only source files that exist: in the folder of the document, or from the top", () => {
    const files = ["src", "test", "bench"].flatMap((folder) =>
      readdirSync(new URL(`${folder}/`, root), { recursive: true, encoding: "utf8" }).map(
        (name) => `${folder}/${name}`,
      ),
    );
    const readmes = files.filter((path) => path.startsWith("src/") && path.endsWith("/README.md"));
    expect(readmes).toContain("src/net/README.md");
    for (const path of [...readmes, "docs/architecture.md", "docs/development.md"]) {
      const folder = path.replace("docs/", "src/").replace(/[^/]+$/, "");
      for (const [, name = ""] of read(path).matchAll(/`([\w./-]+\.[jt]s)`/g)) {
        const isThere = files.some((file) => file === name || (file.startsWith(folder) && file.endsWith(`/${name}`)));
        expect(isThere, `${path} names ${name}`).toBe(true);
      }
    }
  });
});

function read(path: string | URL): string {
  return readFileSync(new URL(path, root), "utf8");
}

/** Returns the fragments that lead to the headings of a document, as GitHub makes them. */
function headingsOf(document: URL): string[] {
  const headings = read(document).matchAll(/^#+ (.+)$/gm);
  return [...headings].map(
    ([, title = ""]) =>
      `#${title
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, "")
        .replaceAll(" ", "-")}`,
  );
}
