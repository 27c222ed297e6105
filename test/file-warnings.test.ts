import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { fileWarnings } from "../src/model/file-warnings.ts";
import { withApp } from "./http/failing-app.ts";

it("each warning is documented in docs/api.md and in the OpenAPI document, with when it is given", async () => {
  const api = readFileSync(new URL("../docs/api.md", import.meta.url), "utf8");
  const rows = [...api.matchAll(/^\| `([a-z_]+)` +\| (.+?) +\|$/gm)];
  const documented = new Map(rows.map(([, code, when]) => [code, when]));
  const { body } = await withApp({}, async (app) => app.inject("/openapi.json"));
  for (const [code, when] of Object.entries(fileWarnings)) {
    expect(documented.get(code)).toBe(when);
    expect(body).toContain(`\`${code}\`: ${when}`);
  }
});
