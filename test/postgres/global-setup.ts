import type { TestProject } from "vitest/node";
import { startPostgres } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** URL of a database; tests may create others on its server. */
    postgresUrl: string;
  }
}

/** One server for the whole run, unless TEST_POSTGRES_URL names one. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env["TEST_POSTGRES_URL"];
  if (given !== undefined) {
    project.provide("postgresUrl", given);
    return undefined;
  }
  const server = await startPostgres();
  project.provide("postgresUrl", server.url());
  return server.stop;
}
