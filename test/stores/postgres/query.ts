import { Client, type QueryResultRow } from "pg";

/** Runs one statement on a connection of its own. */
export async function query<Row extends QueryResultRow>(
  url: string,
  statement: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new Client({ connectionString: url });
  // A server that crashes between two calls ends the connection; the next call rejects with it.
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query<Row>(statement, values)).rows;
  } finally {
    await client.end();
  }
}
