import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { startPostgres } from "../test/postgres/server.ts";

/** A Postgres server for one benchmark. */
export interface BenchPostgres extends AsyncDisposable {
  /** Version and fsync setting. */
  name: string;
  /** Creates an empty database, dropped at the end; returns its URL. */
  open(): Promise<string>;
}

/** Uses the server that TEST_POSTGRES_URL names, or starts one. */
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

/** Returns the first value of the first row as text. */
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
