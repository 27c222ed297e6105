import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { startPostgres } from "../test/postgres/server.ts";

/** A Postgres for the time of a bench. */
export interface BenchPostgres extends AsyncDisposable {
  /** In a few words. */
  name: string;
  /** The URL of a new, empty database; dropped at the end. */
  open(): Promise<string>;
}

/** The server that TEST_POSTGRES_URL names, or one of our own. */
export async function openBenchPostgres(): Promise<BenchPostgres> {
  const given = process.env["TEST_POSTGRES_URL"];
  const own = given === undefined ? await startPostgres({ isDurable: true }) : undefined;
  const server = given ?? own?.url() ?? "";
  const opened: string[] = [];
  return {
    name: await ask(
      server,
      "SELECT 'Postgres ' || current_setting('server_version') || ', fsync ' || current_setting('fsync')",
    ),
    async open() {
      const name = `unreel_bench_${randomBytes(6).toString("hex")}`;
      await ask(server, `CREATE DATABASE ${name}`);
      opened.push(name);
      const url = new URL(server);
      url.pathname = name;
      return url.href;
    },
    async [Symbol.asyncDispose]() {
      for (const name of opened) await ask(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await own?.stop();
    },
  };
}

/** Gives the first value of the first row, as text. */
async function ask(url: string, statement: string): Promise<string> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<string[]>({ text: statement, rowMode: "array" });
    return rows[0]?.[0] ?? "";
  } finally {
    await client.end();
  }
}
