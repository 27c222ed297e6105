import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { KeyStore } from "../stores/key-store.ts";
import { noFollow } from "../files/no-follow.ts";
import { KeyCommand, KeyResult, runKeyCommand } from "./commands.ts";
import { hashOf } from "./secrets.ts";
import { messageOf, systemErrorCode } from "../model/errors.ts";
import { parseJson } from "../model/schema.ts";

interface KeySocketOptions {
  /** Where the socket is; created if missing. */
  folder: string;
  keys: KeyStore;
  /** Called after each command, before its response. */
  onCommand: () => Promise<void>;
}

/** What is sent to the socket: the token shows that the sender may read the file of this user alone. */
const Request = Type.Object({ token: Type.String(), command: Type.Unknown() });

/** Sent instead of a result. */
const Refusal = Type.Object({ error: Type.String() });

/** Longest command and response, UTF-16 units. */
const maxLength = 1024 * 1024;

const timeoutMs = 10_000;

/**
 * Takes commands for a store that only this process can open: on a Unix socket for this user alone (mode 0600),
 * one command as a line of JSON for each connection, with the token of a file next to the socket. A process of this
 * user that may not read the folder, such as yt-dlp's, thus cannot give commands. A socket and a token that an
 * earlier process has left are replaced.
 *
 * @throws Error if the socket or the file cannot be created, or another process takes commands there.
 */
export async function openKeySocket(options: KeySocketOptions) {
  const { folder, keys, onCommand } = options;
  const path = pathIn(folder);
  const token = randomBytes(32).toString("base64url");
  const sockets = new Set<Socket>();

  async function respond(line: string): Promise<object> {
    try {
      const request = parseJson(line);
      if (!Value.Check(Request, request) || !isSame(request.token, token)) {
        return { error: `a key command must come with the token in ${tokenPathIn(folder)}` };
      }
      const { command } = request;
      if (!Value.Check(KeyCommand, command)) return { error: "this is not a valid key command" };
      const result = await runKeyCommand(keys, command);
      await onCommand();
      return result;
    } catch (error) {
      return { error: messageOf(error) };
    }
  }

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    socket.setTimeout(timeoutMs, () => socket.destroy());
    readLine(socket)
      .then(async (line) => socket.end(`${JSON.stringify(await respond(line))}\n`))
      .catch(() => socket.destroy());
  });
  await mkdir(folder, { recursive: true });
  const other = await connectTo(path);
  if (other !== undefined) {
    other.destroy();
    throw new Error(`another process takes key commands at ${path}, for a store of its own`);
  }
  await rm(path, { force: true });
  await saveToken(folder, token);
  server.listen(path);
  await once(server, "listening");
  await chmod(path, 0o600);

  return {
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await server[Symbol.asyncDispose]();
      await rm(tokenPathIn(folder), { force: true });
    },
  };
}

/**
 * Sends a command to the service that has opened the socket in `folder`. Returns undefined if there is none.
 *
 * @throws Error with the service's message if it refuses the command, if it does not respond, or if its token cannot be read.
 */
export async function sendKeyCommand(folder: string, command: KeyCommand): Promise<KeyResult | undefined> {
  const socket = await connectTo(pathIn(folder));
  if (socket === undefined) return undefined;
  try {
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error("the service does not respond")));
    const token = await readFile(tokenPathIn(folder), { encoding: "utf8", flag: noFollow.read });
    socket.write(`${JSON.stringify({ token, command })}\n`);
    const response = parseJson(await readLine(socket));
    if (Value.Check(Refusal, response)) throw new Error(response.error);
    if (Value.Check(KeyResult, response)) return response;
    throw new Error("the service sent an unexpected response");
  } finally {
    socket.destroy();
  }
}

/** Returns undefined if no process listens there. */
async function connectTo(path: string): Promise<Socket | undefined> {
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return socket;
  } catch (error) {
    // EINVAL: the path is too long for a socket, so no service has one there.
    if (["ENOENT", "ECONNREFUSED", "EINVAL"].includes(systemErrorCode(error) ?? "")) return undefined;
    throw error;
  }
}

function pathIn(folder: string): string {
  return join(folder, "keys.sock");
}

function tokenPathIn(folder: string): string {
  return join(folder, "keys.token");
}

/** Writes a new file, which no other program has open; for this user alone (mode 0600). */
async function saveToken(folder: string, token: string): Promise<void> {
  const path = tokenPathIn(folder);
  await rm(path, { force: true });
  await writeFile(path, token, { flag: "wx", mode: 0o600 });
}

/** Compares in a time that says nothing of either. */
function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(hashOf(given)), Buffer.from(hashOf(expected)));
}

/** @throws Error if the socket ends before the line does, or the line is too long. */
async function readLine(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8");
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    const end = text.indexOf("\n");
    if (end !== -1) return text.slice(0, end);
    if (text.length > maxLength) throw new Error("the line is too long");
  }
  throw new Error("the connection was closed within the line");
}
