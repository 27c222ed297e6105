import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { resource } from "../media/resources.ts";
import { makeFolder } from "../folder.ts";
import { film, openSite } from "./film-site.ts";
import type { TaskClient } from "./download-client.ts";
import { compileCache } from "./keys.ts";
import { clientOf, openTestCluster } from "./test-cluster.ts";

const page = (title: string) =>
  resource(
    "text/html",
    `<title>${title}</title><meta property="og:title" content="${title}"><meta property="og:video" content="film.mp4">`,
  );

async function open() {
  const site = await openSite();
  site.resources.set("watch", page("An evening"));
  const library = join(makeFolder(), "library");
  mkdirSync(library);
  const env = { LIBRARY_DIR: library, LIBRARY_TEMPLATE: "Films/{title}" };
  /** Resolves once the task's file has been put there. */
  const placed = async (client: TaskClient, id: string) => {
    await expect.poll(async () => (await client.get(id)).library?.length).toBeGreaterThan(0);
    return client.get(id);
  };
  const names = () => readdirSync(join(library, "Films")).toSorted();
  return { site, library, env, placed, names, cluster: openTestCluster("sqlite:", env) };
}

describe("a service with LIBRARY_DIR", () => {
  it("puts each film there, leaves it when its task is deleted, and removes both if that is asked for", async () => {
    const { site, library, cluster, placed, names } = await open();
    const client = await clientOf(await cluster.start("all"));
    const ids: string[] = [];
    for (let n = 0; n < 2; n += 1) {
      const { id } = await client.post(site.url("watch"));
      await placed(client, id);
      ids.push(id);
    }
    expect(names()).toEqual(["An evening (2).mp4", "An evening.mp4"]);
    expect(readFileSync(join(library, "Films/An evening.mp4")).equals(film)).toBe(true);
    expect(await client.request("DELETE", ids[0]!)).toBe(204);
    expect(await client.request("DELETE", ids[1]!, "?library=true")).toBe(204);
    expect(names()).toEqual(["An evening.mp4"]);
  });

  it("puts it there after it was killed while the folder was away", async () => {
    const { site, library, cluster, placed, names } = await open();
    const service = await cluster.start("all");
    const client = await clientOf(service);
    await placed(client, (await client.post(site.url("film.mp4"))).id);
    renameSync(library, `${library}-away`);
    const { id } = await client.post(site.url("watch"));
    await expect.poll(async () => (await client.get(id)).file?.warnings).toMatchObject([{ code: "library_failed" }]);
    await service.end("SIGKILL");
    renameSync(`${library}-away`, library);
    const after = await clientOf(await cluster.start("all"));
    expect((await placed(after, id)).file?.warnings).toEqual([]);
    expect(names()).toEqual(["An evening.mp4", "film.mp4"]);
  });

  it("shows the path of a page, without a download", async () => {
    const { site, library, env } = await open();
    const program = fileURLToPath(new URL("../../src/cli/library.ts", import.meta.url));
    const settings = {
      ...env,
      NODE_COMPILE_CACHE: compileCache,
      YTDLP: "off",
      ALLOW_NETWORKS: "127.0.0.0/8",
      PATH: process.env["PATH"],
      // Faults of settings that it does not use do not matter.
      PORT: "none",
      WEBHOOK_URL: "http://127.0.0.1/",
    };
    const run = (...words: string[]) => promisify(execFile)(process.execPath, [program, ...words], { env: settings });
    const preview = (url: string) => run("preview", url);
    site.resources.set("list", resource("audio/x-mpegurl", "#EXTM3U\n#EXTINF:1,A\na.mp4\n#EXTINF:1,B\nb.mp4\n"));
    expect((await preview(site.url("watch"))).stdout).toBe("Films/An evening.mp4\n");
    await expect(preview(site.url("none"))).rejects.toMatchObject({ code: 1, stderr: /^library: .*404\n$/ });
    const refused = { code: 1, stderr: expect.stringContaining("is a playlist of 2 entries") };
    await expect(preview(site.url("list"))).rejects.toMatchObject(refused);
    const isRefused = (fault: string) => ({ code: 2, stderr: expect.stringContaining(`library: ${fault}\nusage: `) });
    await expect(preview("x")).rejects.toMatchObject(isRefused('URL must begin with https:// or http://, got "x"'));
    await expect(run("preview", "http://a/", "http://b/")).rejects.toMatchObject(isRefused("one URL at a time, got 2"));
    await expect(run("show")).rejects.toMatchObject(isRefused('the command must be preview, got "show"'));
    expect((await run("help")).stdout).toContain("usage: ");
    expect(readdirSync(library)).toEqual([]);
  });
});
