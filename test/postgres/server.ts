import { chownSync, mkdtempSync, readFileSync, type RmOptions } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBinaries } from "./binaries.ts";
import { type GuardedProgram, startGuarded } from "./guarded.ts";

/** A Postgres of our own, reached through a unix socket in its temporary folder. */
export interface PostgresServer extends AsyncDisposable {
  /** Returns the URL of `database` for a superuser; default `postgres`. */
  url(database?: string): string;
  /** Of the postmaster. */
  readonly pid: number;
  /** Holds its data and its socket. */
  readonly folder: string;
  /** Closes every connection and starts again with the same data at the same URL. */
  restart(): Promise<void>;
  /** Closes every connection and removes the folder. */
  stop(): Promise<void>;
}

/** Root starts the server as nobody, for Postgres refuses to run as root. */
const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
const removal: RmOptions = { recursive: true, force: true };

/**
 * Starts a server that ends with this process, however this process ends.
 *
 * `isDurable`: syncs to the disk, which tests do not need.
 *
 * @throws Error with the output of Postgres if it does not start.
 */
export async function startPostgres({ isDurable = false } = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "unreel-postgres-"));
  const data = join(folder, "data");
  try {
    if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
    const bin = findBinaries(folder, user);
    await initialise(bin, folder, data);
    let program = await start(bin, folder, data, isDurable);
    const stop = async () => {
      await program.end();
      await rm(folder, removal);
    };
    return {
      url: (database = "postgres") => `postgres://postgres@localhost/${database}?host=${encodeURIComponent(folder)}`,
      get pid() {
        return Number.parseInt(readFileSync(join(data, "postmaster.pid"), "utf8"), 10);
      },
      folder,
      async restart() {
        await program.end();
        program = await start(bin, folder, data, isDurable);
      },
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (cause) {
    await rm(folder, removal);
    throw cause;
  }
}

/** With ICU collation, as on most servers; it sorts differently from JavaScript. */
const initOptions = "--username=postgres --auth=trust --encoding=UTF8 --locale-provider=icu --icu-locale=en --no-sync";

async function initialise(bin: string, folder: string, data: string): Promise<void> {
  const command = [join(bin, "initdb"), `--pgdata=${data}`, ...initOptions.split(" ")];
  const program = startGuarded(command, folder, user);
  await program.hasEnded();
  const code = await program.end();
  if (code !== 0) throw new Error(`initdb ended with ${code}: ${program.log()}`);
}

async function start(bin: string, folder: string, data: string, isDurable: boolean): Promise<GuardedProgram> {
  const settings = [
    "listen_addresses=",
    `unix_socket_directories=${folder}`,
    "max_connections=200",
    ...(isDurable ? [] : ["fsync=off", "full_page_writes=off"]),
  ];
  const command = [join(bin, "postgres"), "-D", data, ...settings.flatMap((each) => ["-c", each])];
  const program = startGuarded(command, folder, user);
  if (await program.hasWritten("ready to accept connections")) return program;
  const code = await program.end();
  throw new Error(`postgres ended with ${code} before it was ready: ${program.log()}`);
}
