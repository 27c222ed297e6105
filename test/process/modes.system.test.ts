import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openTaskClient } from "./download-client.ts";
import { openSite } from "./film-site.ts";
import { startTestService } from "./test-service.ts";
import { makeFolder } from "../folder.ts";

it.skipIf(process.platform === "win32")(
  "everything that the service creates is for its user alone; a folder that existed keeps its mode",
  async () => {
    const parent = makeFolder();
    const dataDir = join(parent, "new", "data");
    mkdirSync(join(parent, "new"), { mode: 0o755 });
    const site = await openSite();
    const service = await startTestService({
      DATA_DIR: dataDir,
      ALLOW_NETWORKS: "127.0.0.1/32",
      MIN_FREE_BYTES: "0",
    });
    const client = await openTaskClient(service.url);
    const { id } = await client.post(site.url("film.mp4"));
    expect(await client.ended(id)).toMatchObject({ state: "succeeded" });
    client.close();
    const names = readdirSync(dataDir, { recursive: true, encoding: "utf8" });
    expect(names).toEqual(expect.arrayContaining(["tasks.db", "tasks.db-wal", join("files", id)]));
    for (const name of ["", ...names]) {
      const found = statSync(join(dataDir, name));
      expect([name, found.mode & 0o777]).toEqual([name, found.isDirectory() ? 0o700 : 0o600]);
    }
    expect(statSync(join(parent, "new")).mode & 0o777).toBe(0o755);
  },
);
