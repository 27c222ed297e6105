import { createHash } from "node:crypto";
import type { Format, PageInfo } from "../../src/model/page-info.ts";
import type { Task } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";

/** Returns a task as they are in lists: it has downloaded one of four HLS formats. No two have the same ids and texts. */
export function listedTask(n: number): Task {
  const key = hash(n).slice(0, 11);
  const task = newTask(`https://video.example.com/watch/${key}`, {}, new Date());
  const title = `${pick(n, subjects)} ${pick(n * 7, places)}, part ${n}`;
  const file = {
    name: `${title}.mp4`,
    mime_type: "video/mp4",
    size: 12_345_678 + 987_654 * n,
    sha256: hash(n),
    duration: 61.5 + n,
    width: 1920,
    height: 1080,
    url: `/tasks/${task.id}/file`,
    warnings: [],
  };
  const { created_at } = task;
  const times = { started_at: created_at, finished_at: created_at };
  return {
    ...task,
    ...times,
    state: "succeeded",
    attempts: 1,
    info: infoOf(task, key, title),
    file,
  };
}

const subjects = ["How a bridge is built", "An evening walk", "The last train", "Cooking for four"];
const places = ["by the sea", "in the mountains", "at the old harbour", "in winter", "at night"];

function infoOf(task: Task, key: string, title: string): PageInfo {
  const media = `https://media.example.com/vod/${key}`;
  return {
    url: task.url,
    webpage_url: task.url,
    site_name: "Example Video",
    media_type: "video",
    title,
    description: `${title}. Filmed and cut by the people of the film club, who meet on Mondays.`,
    language: "en",
    duration: 61.5,
    uploaded_at: task.created_at,
    uploader: "Film club",
    uploader_url: "https://video.example.com/u/film-club",
    thumbnails: [{ url: `${media}/poster.jpg`, width: 1280, height: 720 }],
    embed: null,
    view_count: Number.parseInt(key.slice(0, 4), 16),
    like_count: null,
    live_status: "not_live",
    age_limit: null,
    tags: ["film", "club"],
    formats: [1080, 720, 480, 360].map((height) => formatOf(media, height)),
    subtitles: {},
    sources: { title: "og", description: "og", duration: "json-ld", formats: "manifest" },
    resolver: "page",
    fetched_at: task.created_at,
  };
}

function formatOf(media: string, height: number): Format {
  return {
    format_id: `hls-${height}`,
    url: `${media}/${height}p/index.m3u8`,
    manifest_url: `${media}/master.m3u8`,
    protocol: "m3u8",
    ext: "mp4",
    mime_type: "application/vnd.apple.mpegurl",
    width: Math.round((height * 16) / 9),
    height,
    fps: 25,
    vcodec: "avc1.64001f",
    acodec: "mp4a.40.2",
    tbr: height * 3.5,
    filesize: null,
    language: null,
    has_drm: false,
  };
}

function pick(n: number, texts: readonly string[]): string {
  return texts[n % texts.length] ?? "";
}

function hash(n: number): string {
  return createHash("sha256").update(`${n}`).digest("hex");
}
