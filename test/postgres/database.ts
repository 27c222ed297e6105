import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { inject, onTestFinished } from "vitest";
import { type PostgresServer, startPostgres } from "./server.ts";

/**
 * Creates an empty database and returns its URL. Passes the function that drops it, with all its connections,
 * to `whenOver`; default: drops it after the test.
 */
export async function openDatabase(whenOver: (drop: () => Promise<void>) => unknown = onTestFinished): Promise<string> {
  const name = `unreel_${randomBytes(6).toString("hex")}`;
  // A copy of files takes a quarter of the time that a copy in the log takes.
  await run(`CREATE DATABASE ${name} STRATEGY file_copy`);
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

/** Starts a server for this test alone, which may restart or stop it. */
export async function startOwnPostgres(): Promise<PostgresServer> {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  return server;
}
