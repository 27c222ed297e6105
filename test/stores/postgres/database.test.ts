import { createServer } from "node:net";
import { expect, inject, onTestFinished, test } from "vitest";
import { connectionConfig, createDatabase } from "../../../src/stores/postgres/database.ts";
import { isConnectionLost, toStoreError } from "../../../src/stores/postgres/database-errors.ts";
import { closedPort, listen } from "../../net/listen.ts";

test("a connection that the server ends as soon as it is ready only fails its transaction", async () => {
  const uncaught: unknown[] = [];
  const catchError = (error: unknown) => void uncaught.push(error);
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException").on("uncaughtException", catchError);
  onTestFinished(() => {
    process.off("uncaughtException", catchError);
    for (const listener of others) process.on("uncaughtException", listener);
  });
  const database = createDatabase(connectionConfig(await startEndingServer()), () => {});
  onTestFinished(database.close);
  const failure = await database.transaction((sql) => sql.query("SELECT 1")).catch((error: unknown) => error);
  expect(failure).toSatisfy((error) => error instanceof Error && isConnectionLost(error));
  expect(uncaught).toEqual([]);
});

test("statements that were sent after one that fails fail as it does, so that whoever waits for all gets the reason", async () => {
  const database = createDatabase(connectionConfig(inject("postgresUrl")), () => {});
  onTestFinished(database.close);
  const sent = database.transaction(async (sql) => {
    const ends = await Promise.allSettled([sql.query("SELECT 1 / 0"), sql.query("SELECT 1"), sql.query("SELECT 2")]);
    return ends.map((end) => end.status === "rejected" && String(end.reason));
  });
  expect(new Set(await sent)).toEqual(new Set(["error: division by zero"]));
});

/** Starts a server that reports in one packet that a new connection is ready and that it is terminated. */
async function startEndingServer(): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(Buffer.concat([authenticationOk, readyForQuery, fatal])));
  });
  const port = await listen(server);
  onTestFinished(() => void server.close());
  return `postgres://user@127.0.0.1:${port}/name`;
}

/** A message of the protocol (PostgreSQL 18, §54.7): its type, its length with the length field, its body. */
function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

const authenticationOk = message("R", Buffer.alloc(4));
const readyForQuery = message("Z", Buffer.from("I"));
const fatal = message(
  "E",
  Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"),
);

test.each(["Connection terminated unexpectedly", "Client has encountered a connection error and is not queryable"])(
  "that a connection was lost is said in plain words, not only in the driver's: %s",
  (reason) => {
    const expected = `the task store failed: the connection to the database was lost (${reason})`;
    expect(toStoreError(new Error(reason))).toMatchObject({ code: "unavailable", message: expected });
  },
);

test("why the database cannot be reached is said without its address", async () => {
  const url = `postgres://u:secret@127.0.0.1:${await closedPort()}/name`;
  const database = createDatabase(connectionConfig(url), () => {});
  onTestFinished(database.close);
  const failure = await database.transaction((sql) => sql.query("SELECT 1")).catch((error: unknown) => error);
  const expected = { code: "unavailable", message: "the task store failed: connect ECONNREFUSED" };
  expect(toStoreError(failure)).toMatchObject(expected);
});
