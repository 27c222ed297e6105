import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeFolder } from "../folder.ts";
import { layWebm } from "../media/dash.ts";
import { mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, resource, type Resources } from "../media/resources.ts";
import type { Site } from "../media/site.ts";
import { startTestSite } from "../media/test-site.ts";
import { audioInput, ffmpeg, missing, videoInput } from "../remux/mp4-media.ts";
import { clientOf } from "./test-cluster.ts";
import { framesOf, openStreamReader, packetsOf, save } from "./stream-client.ts";
import { startTestService } from "./test-service.ts";

const durationS = 6;

function makeWebm(folder: string, name: string, options: string): Buffer {
  ffmpeg(`${options} -cluster_time_limit 1000 ${join(folder, name)}`);
  return readFileSync(join(folder, name));
}

/** Lists two segments of video and audio from there on, which are all that is there. */
function listFrom(site: Site, all: Resources, at: number): void {
  const listed = (kind: string) => {
    const name = (n: number | "init") => [...all.keys()].find((path) => path.startsWith(`${kind}/${n}.`))!;
    const lines = [at, at + 1].flatMap((n) => ["#EXTINF:1.0,", name(n + 1)]);
    const head = [`#EXT-X-MEDIA-SEQUENCE:${at}`, `#EXT-X-MAP:URI="${name("init")}"`];
    return { playlist: hls(mediaPlaylist([...head, ...lines], at + 2 === durationS)), name };
  };
  const there = new Map([["main.m3u8", all.get("main.m3u8")!]]);
  for (const kind of ["video", "audio"]) {
    const { playlist, name } = listed(kind);
    there.set(`${kind}.m3u8`, playlist);
    for (const n of ["init", at + 1, at + 2] as const) there.set(name(n), all.get(name(n))!);
  }
  site.resources = there;
}

describe.skipIf(missing("libvpx-vp9", "libopus"))("a live stream with audio in WebM", () => {
  /** Records the stream, whose window moves once both of its segments were fetched of both tracks. */
  async function record(isWebm: boolean, whileThere: (url: string) => Promise<void> = async () => {}) {
    const folder = makeFolder();
    const video = makeWebm(
      folder,
      "v.webm",
      `${videoInput(durationS)} -c:v libvpx-vp9 -g 25 -deadline realtime -cpu-used 8 -b:v 100k`,
    );
    const audio = makeWebm(folder, "a.webm", `${audioInput(durationS)} -c:a libopus`);
    const all = layWebm(video, audio, durationS);
    const media = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="audio.m3u8"';
    const codecs = isWebm ? "vp09.00.10.08" : "avc1.64000c";
    all.set(
      "main.m3u8",
      hls(`#EXTM3U\n${media}\n#EXT-X-STREAM-INF:BANDWIDTH=200000,CODECS="${codecs},opus",AUDIO="a"\nvideo.m3u8\n`),
    );
    if (!isWebm) {
      const { init, pieces } = readRendition("video.m4s");
      all.delete("video/init.webm");
      all.set("video/init.mp4", resource("video/mp4", init!));
      for (const [i, { data }] of pieces.entries()) {
        all.delete(`video/${i + 1}.webm`);
        all.set(`video/${i + 1}.m4s`, resource("video/mp4", data));
      }
    }
    const site = await startTestSite(new Map());
    // So few are fetched ahead that those that nobody reads are gone before the end.
    const service = await startTestService({
      DATA_DIR: folder,
      ALLOW_NETWORKS: "127.0.0.1/32",
      CONCURRENT_FRAGMENTS: "1",
    });
    const client = await clientOf(service);
    listFrom(site, all, 0);
    const { id } = await client.post(site.url("main.m3u8"));
    for (const at of [0, 2, 4]) {
      listFrom(site, all, at);
      if (at === 0) await whileThere(`${service.url}/tasks/${id}/stream`);
      const isFetched = (kind: string) => site.asked.some(({ path }) => path.startsWith(`${kind}/${at + 2}.`));
      await site.until(() => isFetched("video") && isFetched("audio"));
    }
    const task = await client.ended(id);
    expect(task.file?.warnings).toEqual([]);
    const file = save(join(folder, "file"), await (await client.file(id)).bytes());
    const pieces = ["init", 1, 2, 3, 4, 5, 6].map((n) => all.get(`audio/${n}.webm`)!.body);
    const source = save(join(folder, "source"), Buffer.concat(pieces));
    expect(packetsOf(file)).toEqual(packetsOf(source));
    return { file, folder };
  }

  it("is sent while it is recorded, and has all of its audio", async () => {
    let rest: Promise<Buffer> | undefined;
    const { file, folder } = await record(true, async (url) => {
      const reader = await openStreamReader(url);
      expect(reader.response.headers.get("content-type")).toBe("video/webm");
      await reader.untilMedia();
      rest = reader.all();
    });
    expect(framesOf(save(join(folder, "streamed"), await rest!))).toEqual(framesOf(file));
  });

  it("has all of its audio if its video is MP4", async () => {
    await record(false);
  });
});
