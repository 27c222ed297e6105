import { type TSchema, Type } from "@sinclair/typebox";
import type { PageInfo as PageInfoRecord } from "../../src/model/page-info.ts";
import { PageInfo } from "../../src/model/page-info.ts";
import type { Resolver } from "../../src/resolvers/resolver.ts";
import { InfoQuerySchema } from "../../src/http/routes/info.ts";
import { NewTaskBody, NewTaskHeaders } from "../../src/http/routes/new-task.ts";
import { ListQuerySchema } from "../../src/http/routes/tasks.ts";
import { nullable } from "../../src/model/schema.ts";
import { Task } from "../../src/model/task.ts";

export interface Route {
  method: "GET" | "POST";
  path: string;
  query?: string;
  body?: string;
  /** The schemas of the service's route. */
  schema: {
    headers?: TSchema;
    body?: TSchema;
    querystring?: TSchema;
    response: Record<number, TSchema>;
  };
}

export type RouteName = keyof typeof routes;

const page = "https://video.example.test/watch/42?list=7";

export const routes = {
  create: {
    method: "POST",
    path: "/tasks/",
    body: JSON.stringify({ url: page }),
    schema: {
      headers: NewTaskHeaders,
      body: NewTaskBody,
      response: { 201: Task },
    },
  },
  list: {
    method: "GET",
    path: "/tasks/",
    schema: {
      querystring: ListQuerySchema,
      response: { 200: Type.Object({ tasks: Type.Array(Task), next: nullable(Type.String()) }) },
    },
  },
  info: {
    method: "GET",
    path: "/info",
    query: `?url=${encodeURIComponent(page)}`,
    schema: { querystring: InfoQuerySchema, response: { 200: PageInfo } },
  },
} as const satisfies Record<string, Route>;

/** Fetches nothing; returns a prepared record of typical size. */
export function createReadyResolver(): Resolver<typeof PageInfo> {
  return {
    name: "ready",
    output: PageInfo,
    resolve: async () => readyInfo,
    close: async () => {},
  };
}

const heights = [2160, 1440, 1080, 720, 480, 360];

const readyInfo: PageInfoRecord = {
  url: page,
  webpage_url: page,
  site_name: "Example Video",
  media_type: "video",
  title: "An invented film about the making of tables",
  description: "What the film tells, in a few sentences of a usual length. ".repeat(5),
  language: "en",
  duration: 754,
  uploaded_at: "2026-01-31T12:00:00.000Z",
  uploader: "Example Channel",
  uploader_url: "https://video.example.test/channel/1",
  thumbnails: [{ url: "https://img.example.test/42.jpg", width: 1280, height: 720 }],
  embed: { url: "https://video.example.test/embed/42", width: 1280, height: 720 },
  view_count: 123_456,
  like_count: 7_890,
  live_status: "not_live",
  age_limit: 0,
  tags: ["tables", "wood", "making", "workshop"],
  formats: heights.map((height) => ({
    format_id: `${height}p`,
    url: `https://media.example.test/42/${height}/index.m3u8`,
    manifest_url: "https://media.example.test/42/master.m3u8",
    protocol: "m3u8",
    ext: "mp4",
    mime_type: "application/vnd.apple.mpegurl",
    width: Math.round((height * 16) / 9),
    height,
    fps: 25,
    vcodec: "avc1.640028",
    acodec: "mp4a.40.2",
    tbr: height * 4,
    filesize: null,
    language: "en",
    has_drm: false,
  })),
  subtitles: { en: [{ url: "https://media.example.test/42/en.vtt", ext: "vtt", name: "English" }] },
  sources: { title: "json-ld", duration: "json-ld", description: "og", formats: "manifest" },
  resolver: "ready",
  fetched_at: "2026-02-01T00:00:00.000Z",
};
