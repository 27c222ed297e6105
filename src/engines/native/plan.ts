import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { ServiceError } from "../../errors.ts";
import { readDash } from "../../manifests/dash.ts";
import { readDashSegments } from "../../manifests/dash-segments.ts";
import { readHls } from "../../manifests/hls.ts";
import { isMultivariant } from "../../manifests/hls-playlist.ts";
import { readHlsSegments } from "../../manifests/hls-segments.ts";
import { findFormat } from "../../manifests/manifest.ts";
import type { SegmentList } from "../../manifests/segments.ts";
import type { HttpClient } from "../../net/client.ts";
import { urlForMessage } from "../../net/http-url.ts";
import type { Format } from "../../page-info.ts";
import type { DownloadJob } from "../engine.ts";
import { sniffProtocol } from "./sniff-protocol.ts";

/** What is to be fetched, before anything of it is. */
export interface Plan {
  main: Source;
  /** The sound, where it comes apart. */
  audio: Source | null;
  /** `main` has sound of its own only if it turns out so; then `audio` is left. */
  isAudioOptional: boolean;
  /** `main` is one file that can be given as it is. */
  isPassthrough: boolean;
  /** Another one means other bytes: nothing of an earlier run may be used. */
  identity: string;
}

export type SourceName = "main" | "audio";

/** Where the bytes of one format come from. */
export type Source =
  | { name: SourceName; kind: "file"; url: URL }
  | {
      name: SourceName;
      kind: "segments";
      list: SegmentList;
      /** Where a live stream's segments are remembered; `null`: it is none. */
      liveMemory: string | null;
      /** Reads the list again, as it is by now. */
      reload: () => Promise<SegmentList>;
    };

const maxManifestBytes = 4 * 1024 * 1024;

/**
 * Reads the manifests that `job` leads to.
 *
 * @throws ServiceError of the client, `drm_protected`, `live_stream`, `format_unavailable`,
 * `upstream_invalid` for what is no manifest.
 */
export async function planDownload(
  job: DownloadJob,
  client: HttpClient,
  signal: AbortSignal,
): Promise<Plan> {
  const context = { folder: job.folder, client, signal };
  const first = await openFormat("main", job.format, context);
  const soundApart = job.audioOnly ? first.audio : null;
  const opened = soundApart === null ? first : await openFormat("main", soundApart, context);
  const audioFormat = job.audioOnly ? null : (job.audio ?? opened.audio);
  const sound = audioFormat && (await openFormat("audio", audioFormat, context));
  const { source: main } = opened;
  const audio = sound?.source ?? null;
  const isPassthrough = main.kind === "file" && audio === null && job.format.manifest_url === null;
  const isAudioOptional = opened.format.acodec !== "none";
  const made = [job.audioOnly, fingerprint(opened), sound && fingerprint(sound)];
  return { main, audio, isAudioOptional, isPassthrough, identity: JSON.stringify(made) };
}

/** Seconds as its manifest states them; `null`: not known, or not made of segments. */
export function sourceDuration(source: Source): number | null {
  if (source.kind === "file" || source.liveMemory !== null) return null;
  return source.list.segments.reduce((seconds, { durationS }) => seconds + durationS, 0) || null;
}

interface Opened {
  source: Source;
  /** The format itself, or the best of those that it turned out to lead to. */
  format: Format;
  /** Where its sound is, as its own manifest says. */
  audio: Format | null;
}

interface Context {
  folder: string;
  client: HttpClient;
  signal: AbortSignal;
}

async function openFormat(name: SourceName, format: Format, context: Context): Promise<Opened> {
  const url = new URL(format.url);
  if (format.protocol === "https") {
    const protocol = await sniffProtocol(url, format, context);
    if (protocol === null) return { source: { name, kind: "file", url }, format, audio: null };
    return openFormat(name, { ...format, protocol, manifest_url: format.url }, context);
  }
  const read = async () => readManifest(await fetchManifest(url, context), format);
  const first = await read();
  if ("formats" in first) {
    const [best, audio] = bestOf(first.formats, format);
    return { ...(await openFormat(name, best, context)), audio };
  }
  const reload = async () => {
    const list = await read();
    if (!("formats" in list)) return list;
    throw new ServiceError(
      "upstream_invalid",
      `the media playlist at ${urlForMessage(url)} has become a multivariant one`,
    );
  };
  const place = createHash("sha256").update(pathOf(format.url)).digest("hex").slice(0, 16);
  const memory = join(context.folder, `${name}-${place}.live`);
  // What began live goes on as such, also if the stream has ended since.
  const liveMemory = !first.hasEnded || existsSync(memory) ? memory : null;
  return {
    source: { name, kind: "segments", list: first, liveMemory, reload },
    format,
    audio: null,
  };
}

interface Text {
  text: string;
  url: URL;
}

async function fetchManifest(url: URL, { client, signal }: Context): Promise<Text> {
  const answer = await client.get(url, { signal, maxBytes: maxManifestBytes });
  return { text: await readText(answer.body), url: answer.url };
}

/** The segments of `format`, or the formats that one has to be chosen from first. */
function readManifest({ text, url }: Text, format: Format): SegmentList | { formats: Format[] } {
  const isOfItself = format.url === format.manifest_url;
  if (format.protocol === "dash") {
    const { formats } = readDash(text, url);
    const isListed = findFormat(formats, format.format_id) !== undefined;
    if (isListed || !isOfItself || formats.length === 0) {
      return readDashSegments(text, url, format.format_id);
    }
    return { formats };
  }
  return isOfItself && isMultivariant(text)
    ? { formats: readHls(text, url).formats }
    : readHlsSegments(text, url);
}

/** The best of a manifest that could not be read when the page was. */
function bestOf(formats: readonly Format[], wanted: Format): [best: Format, audio: Format | null] {
  // A playlist that lists itself leads nowhere.
  const usable = formats.filter(
    ({ has_drm, url, protocol }) => !has_drm && (protocol !== "m3u8" || url !== wanted.url),
  );
  const [best] = usable.toSorted(
    (a, b) =>
      Number(a.vcodec === "none") - Number(b.vcodec === "none") ||
      (b.height ?? 0) - (a.height ?? 0) ||
      (b.tbr ?? 0) - (a.tbr ?? 0),
  );
  if (best === undefined) {
    const address = urlForMessage(new URL(wanted.url));
    const isLocked = formats.some(({ has_drm }) => has_drm);
    throw isLocked
      ? new ServiceError("drm_protected", `all formats of ${address} are protected by DRM`)
      : new ServiceError("format_unavailable", `${address} lists no format that can be fetched`);
  }
  const sounds = usable.filter(({ vcodec }) => vcodec === "none");
  const audio =
    sounds.find(({ format_id }) => format_id.startsWith("hls-audio-")) ?? sounds[0] ?? null;
  return [best, best.vcodec === "none" || best === audio ? null : audio];
}

/**
 * Tells contents apart, whatever tokens their addresses carry; of a live stream only the address. What
 * differs in the query alone is told apart by what is said of the format.
 */
function fingerprint({ source, format }: Opened): string {
  const { format_id, height, tbr } = format;
  const hash = createHash("sha256").update(JSON.stringify([format_id, height, tbr]));
  if (source.kind === "file") return hash.update(pathOf(source.url.href)).digest("base64url");
  if (source.liveMemory !== null) return hash.update(source.liveMemory).digest("base64url");
  for (const { url, range, durationS } of source.list.segments) {
    hash.update(`${pathOf(url)} ${range?.offset} ${range?.length} ${durationS}\n`);
  }
  return hash.digest("base64url");
}

function pathOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
