import { hash } from "node:crypto";
import type { Task, TaskOptions } from "../model/task.ts";

/**
 * Returns the key by which tasks of an owner for the same video with the same options are found. It is 48 bits of a hash: what is found
 * must be compared (`isSameVideo`).
 */
export function videoKeyOf(url: string, options: TaskOptions, owner: string | undefined): number {
  return keyOf(url, optionsText(options), owner);
}

function keyOf(url: string, wanted: string, owner: string | undefined): number {
  const digest = hash("sha256", `${owner ?? ""}\n${canonicalUrl(url)}\n${wanted}`, "hex");
  return Number.parseInt(digest.slice(0, 12), 16);
}

/** Returns the key of the canonical URL of a task's page; null if that is the task's own URL, or unknown. */
export function pageKeyOf({ url, options, owner, info }: Task): number | null {
  const pageUrl = info?.webpage_url ?? url;
  return canonicalUrl(pageUrl) === canonicalUrl(url) ? null : videoKeyOf(pageUrl, options, owner);
}

/** Returns the key of the site's own id of the task's video; null: it is unknown. */
export function siteKeyOf(task: Task): number | null {
  const name = siteNameOf(task);
  return name === undefined ? null : videoKeyOf(name, task.options, task.owner);
}

/**
 * Returns the keys of tasks for the same video with the same options: of its URL, and of the site's own id. Earlier versions wrote those of
 * options as they were stated.
 */
export function searchKeysOf(task: Task): { video: readonly number[]; site: readonly number[] } {
  const texts = [...new Set([optionsText(task.options), JSON.stringify(videoOptions(task.options))])];
  const keysOf = (name: string) => texts.map((text) => keyOf(name, text, task.owner));
  const site = siteNameOf(task);
  return { video: keysOf(task.url), site: site === undefined ? [] : keysOf(site) };
}

/** Whether a task is for the video that `wanted` is for, of the same owner with the same options. */
export function isSameVideo(task: Task, wanted: Task): boolean {
  if (task.kind !== undefined || task.owner !== wanted.owner) return false;
  if (optionsText(task.options) !== optionsText(wanted.options)) return false;
  const [known, asked] = [siteVideoOf(task), siteVideoOf(wanted)];
  if (known !== undefined && known.extractor === asked?.extractor && known.id === asked.id) return true;
  const url = canonicalUrl(wanted.url);
  return [task.url, task.info?.webpage_url ?? task.url].some((page) => canonicalUrl(page) === url);
}

/** What was read of the page counts before what its URL says. */
function siteVideoOf({ info, video }: Task): Task["video"] {
  const { extractor, video_id: id } = info ?? {};
  return extractor !== undefined && id !== undefined ? { extractor, id } : video;
}

/** Names what the site itself says of the video; undefined: it is unknown. */
function siteNameOf(task: Task): string | undefined {
  const video = siteVideoOf(task);
  return video && `${video.extractor} ${video.id}`;
}

/** Returns the URL without its fragment, unless that is a route of a page with scripts. */
function canonicalUrl(url: string): string {
  const at = url.indexOf("#");
  return at === -1 || /^#[!/]/.test(url.slice(at)) ? url : url.slice(0, at);
}

/** What options mean that are absent, in JSON. */
const defaults: ReadonlyMap<string, string> = new Map([
  ["preferred_codecs", "[]"],
  ["audio_only", "false"],
  ["audio_languages", '["original"]'],
  ["subtitles", "false"],
  ["automatic", "false"],
  ["skip_mode", '"cut"'],
]);

/** Returns what decides what is downloaded of a video, in JSON; options that state their default are as absent ones. */
function optionsText(options: TaskOptions): string {
  return JSON.stringify(videoOptions(options), (name, value: unknown) =>
    defaults.get(name) === JSON.stringify(value) ? undefined : value,
  );
}

/** Returns the options that are of a video alone, not of a list of several. */
export function videoOptions(options: TaskOptions): TaskOptions {
  const { entries: _, if_exists: __, ...wanted } = options;
  return wanted;
}
