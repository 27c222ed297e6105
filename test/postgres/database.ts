import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { inject, onTestFinished } from "vitest";
import { type PostgresServer, startPostgres } from "./server.ts";

/**
 * The URL of a new, empty database, dropped with all its connections by the function that `whenOver`
 * is given; default after the test.
 */
export async function openDatabase(
  whenOver: (drop: () => Promise<void>) => unknown = onTestFinished,
): Promise<string> {
  const name = `unreel_${randomBytes(6).toString("hex")}`;
  await run(`CREATE DATABASE ${name}`);
  whenOver(() => run(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
  const url = new URL(inject("postgresUrl"));
  url.pathname = name;
  return url.href;
}

async function run(statement: string): Promise<void> {
  const client = new Client({ connectionString: inject("postgresUrl") });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** A server for this test alone, to be restarted or stopped at will. */
export async function startOwnPostgres(): Promise<PostgresServer> {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  return server;
}
