import Fastify from "fastify";
import { Client, Pool } from "pg";
import { PgBoss } from "pg-boss";
import { openStore } from "../../src/stores/registry.ts";
import type { TaskOptions } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import type { Route } from "./routes.ts";

/** As many connections as the service has. */
const connections = 10;

/** The POST route with the least code that stores a task and its job in one transaction. */
export async function enqueueApp({ method, path, schema }: Route, storeUrl: string) {
  const boss = new PgBoss({ connectionString: storeUrl, max: 2, schedule: false });
  await boss.start();
  await boss.createQueue("downloads");
  const pool = new Pool({ connectionString: storeUrl, max: connections });
  await pool.query("CREATE TABLE tasks (id text PRIMARY KEY, document text NOT NULL)");
  const app = Fastify();
  app.route<{ Body: { url: string; options?: TaskOptions } }>({
    method,
    url: path,
    schema,
    async handler(request, reply) {
      const { url, options = {} } = request.body;
      const task = newTask(url, options, new Date());
      const { id } = task;
      const client = await pool.connect();
      const db = { executeSql: (text: string, values?: unknown[]) => client.query(text, values) };
      await client.query("BEGIN");
      await client.query("INSERT INTO tasks VALUES ($1, $2)", [id, JSON.stringify(task)]);
      await boss.send("downloads", { id }, { db });
      await client.query("COMMIT");
      client.release();
      return reply.code(201).send(task);
    },
  });
  return app;
}

/** Inserts `count` canceled tasks of `owner` into an empty database without the store. */
export async function fillPostgres(storeUrl: string, count: number, owner?: string): Promise<void> {
  const store = await openStore(storeUrl, { dataDir: "" });
  await store.close();
  const task = newTask("https://video.example.test/watch/{seq}", {}, new Date(), owner);
  const document = { ...task, state: "canceled", finished_at: task.updated_at };
  const client = new Client({ connectionString: storeUrl });
  await client.connect();
  try {
    const json = JSON.stringify(document);
    await client.query(fill, [count, task.id.slice(0, -12), task.id, json, owner ?? null]);
    // As many events as were not counted: the next process that opens the store counts the tasks.
    await client.query("UPDATE unreel.counters SET seq = $1, events = events + $1", [count]);
    await client.query("VACUUM ANALYZE unreel.tasks");
  } finally {
    await client.end();
  }
}

/** $1: count; $2: prefix of the ids; $3, $4, $5: id, document and owner of one task. */
const fill = `
  INSERT INTO unreel.tasks (seq, id, state, host, document, deaths, owner)
  SELECT seq, id, 'canceled', 'video.example.test',
         replace(replace($4, '{seq}', seq::text), $3, id), 0, $5
  FROM (SELECT seq, $2 || lpad(to_hex(seq), 12, '0') AS id FROM generate_series(1, $1) AS seq) AS made
`;
