import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Ajv2020 } from "ajv/dist/2020.js";
import postman from "openapi-to-postmanv2";
import { afterAll, describe, expect, it } from "vitest";
import { PageInfo } from "../../src/model/page-info.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { makeFolder } from "../folder.ts";
import { buildApp } from "./app.ts";
import { calls as otherCalls } from "./calls.ts";
import { withApp } from "./failing-app.ts";
import { hostCalls } from "./host-calls.ts";
import { keyCalls } from "./key-calls.ts";
import { downloadCalls, streamCalls } from "./stream-calls.ts";
import { removeFile, taskCalls } from "./task-calls.ts";
import { thumbnailCalls } from "./thumbnail-calls.ts";
import { openApp } from "./open-app.ts";

interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
}
interface Operation {
  security: object[];
  parameters?: { name: string; in: string }[];
  responses: Record<string, DocumentedResponse>;
}
interface DocumentedResponse {
  description: string;
  content?: Record<string, unknown>;
}
const document: Document = await withApp({}, async (app) => (await app.inject("/openapi.json")).json());
const calls = {
  ...hostCalls(document.paths),
  ...keyCalls(document.paths),
  ...otherCalls,
  ...taskCalls,
  ...streamCalls,
  ...downloadCalls,
  ...thumbnailCalls,
};
const ajv = new Ajv2020({ strict: false });
ajv.addSchema(document, "document");
afterAll(removeFile);

/** Returns the document of a service that reads pages, as `npm start` does. */
async function documentOfPages(): Promise<NamedDocument> {
  const app = await openApp({ resolver: { ...createStubResolver(), output: PageInfo } });
  return (await app.inject("/openapi.json")).json();
}

interface NamedDocument {
  components: { schemas: Record<string, { properties: Record<string, object> }> };
}

function documented(): [name: string, response: DocumentedResponse, pointer: string][] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      Object.entries(responses).map(([status, response]): [string, DocumentedResponse, string] => [
        `${method} ${path} ${status}`,
        response,
        `/paths/${encodeURIComponent(path.replaceAll("/", "~1"))}/${method}/responses/${status}`,
      ]),
    ),
  );
}

describe("the OpenAPI document", () => {
  it("is 3.1 and documents exactly the responses that are tested here", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(
      documented()
        .map(([name]) => name)
        .toSorted(),
    ).toEqual(Object.keys(calls).toSorted());
  });

  it.each(documented())("describes the real response: %s", async (name, response, pointer) => {
    const actual = await calls[name]!();
    expect(String(actual.statusCode)).toBe(name.split(" ").at(-1));
    const [type] = String(actual.headers["content-type"]).split(";");
    if (response.content === undefined) {
      expect(actual.body).toBe("");
      return;
    }
    const [documentedType = ""] = Object.keys(response.content);
    expect(documentedType.replace("*", type!.split("/")[1]!)).toBe(type);
    if (!type!.endsWith("json")) return;
    const schema = `document#${pointer}/content/${encodeURIComponent(type!.replaceAll("/", "~1"))}/schema`;
    const valid = ajv.validate({ $ref: schema }, actual.json());
    expect(ajv.errors, JSON.stringify(actual.json())).toBeNull();
    expect(valid).toBe(true);
    if (type === "application/problem+json") {
      expect(response.description).toContain(`\`${actual.json().code}\``);
    }
  });

  it("has the header fields that routes follow, and none is checked", async () => {
    const conditions = ["if-match", "if-none-match", "range", "if-range"];
    const named = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { parameters = [] }]) => {
        const fields = parameters.filter((parameter) => parameter.in === "header");
        return [`${method} ${path}`, fields.map(({ name }) => name)] as const;
      }),
    );
    expect(Object.fromEntries(named.filter(([, fields]) => fields.length > 0))).toEqual({
      "get /info": ["cache-control"],
      "get /info/thumbnail": ["if-none-match"],
      "post /tasks/": ["traceparent", "tracestate", "idempotency-key", "prefer"],
      "post /tasks/batch": ["traceparent", "tracestate", "idempotency-key"],
      "get /tasks/events": ["last-event-id"],
      "get /tasks/{id}": ["if-match", "if-none-match", "prefer"],
      "delete /tasks/{id}": ["if-match"],
      "get /tasks/{id}/file": conditions,
      "get /tasks/{id}/files/{name}": conditions,
      "get /tasks/{id}/files.zip": conditions,
      "get /links/{token}": conditions,
      "get /tasks/{id}/stream": conditions,
      "get /download": [...conditions, "traceparent", "tracestate"],
      "delete /tasks/{id}/file": ["if-match"],
      "get /tasks/{id}/thumbnail": ["if-none-match"],
    });
    for (const value of ["", "nonsense", `"${"x".repeat(5_000)}"`, "\u00ff"]) {
      const headers = Object.fromEntries(conditions.map((name) => [name, value]));
      for (const path of ["/tasks/x", "/tasks/x/file", "/tasks/x/files/a", "/tasks/x/stream", "/tasks/x/thumbnail"]) {
        const response = await withApp({}, (app) => app.inject({ url: path, headers }));
        expect([path, value, response.statusCode]).toEqual([path, value, 404]);
      }
    }
  });

  it("is imported by Postman with every operation", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const input = { type: "json" as const, data: document as never };
    postman.convertV2(input, {}, (error, result) => resolve(error ?? result));
    const result = (await promise) as {
      result: boolean;
      reason?: string;
      output: { data: unknown }[];
    };
    expect(result).toMatchObject({ result: true });
    const collection = JSON.stringify(result.output[0]?.data);
    const operations = Object.values(document.paths).flatMap((methods) => Object.keys(methods));
    expect(collection.match(/"request":\{"name"/g)).toHaveLength(operations.length);
  });

  it("has no fault for Redocly's linter, except that the path of tasks is fixed", async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, "openapi.json"), JSON.stringify(await documentOfPages()));
    const linter = fileURLToPath(import.meta.resolve("@redocly/cli/bin/cli.js"));
    const config = join(import.meta.dirname, "../../redocly.yaml");
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [linter, "lint", "openapi.json", "--config", config, "--format", "json"],
      { cwd: folder, env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" } },
    );
    expect(JSON.parse(stdout).totals).toEqual({ errors: 0, warnings: 0, ignored: 0 });
  });

  it("names the types that clients see, each once", async () => {
    const { components } = await documentOfPages();
    const names = ["PageInfo", "Format", "Thumbnail", "Subtitle", "Task", "TaskOptions", "TaskFile", "Progress"];
    expect(Object.keys(components.schemas)).toEqual(
      expect.arrayContaining([...names, "FileWarning", "TaskFailure", "TaskList", "NewTask", "Problem"]),
    );
    const { formats } = components.schemas["PageInfo"]!.properties;
    expect(formats).toMatchObject({ type: "array", items: { $ref: "#/components/schemas/Format" } });
    expect(components.schemas["Task"]!.properties["info"]).toMatchObject({
      anyOf: [{ $ref: "#/components/schemas/PageInfo" }, { type: "null" }],
    });
  });

  it("says of each operation which keys it needs, also if it is none", () => {
    const needed = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security }]) => [`${method} ${path}`, security.length] as const),
    );
    expect(needed.filter(([, count]) => count === 0).map(([name]) => name)).toEqual([
      "get /links/{token}",
      "post /session",
      "delete /session",
      "get /health/live",
      "get /health/ready",
    ]);
  });

  it("is the same for the page, with the service's URL as the page sees it, and not there as YAML", async () => {
    await using app = await buildApp();
    const ofPage = await app.inject("/docs/json");
    expect([ofPage.statusCode, ofPage.headers["content-type"]]).toEqual([200, "application/json; charset=utf-8"]);
    const { servers, ...rest } = ofPage.json();
    expect(servers).toEqual([{ url: ".." }]);
    expect({ ...rest, servers: [{ url: "." }] }).toEqual((await app.inject("/openapi.json")).json());
    expect((await app.inject("/docs/yaml")).json()).toMatchObject({ status: 404, code: "not_found" });
  });

  it("is shown on a page that loads nothing from other hosts", async () => {
    await using app = await buildApp();
    const page = await app.inject("/docs/");
    expect(page.statusCode).toBe(200);
    expect(page.headers["content-security-policy"]).toContain("default-src 'self'");
    expect(page.headers["content-security-policy"]).not.toContain("upgrade-insecure-requests");
    const urls = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url);
    expect(urls.length).toBeGreaterThan(3);
    expect(urls.filter((url) => /^(https?:)?\/\//.test(url!))).toEqual([]);
    for (const url of urls) {
      const asset = await app.inject(new URL(url!, "http://localhost/docs/").pathname);
      expect([url, asset.statusCode]).toEqual([url, 200]);
    }
  });
});
