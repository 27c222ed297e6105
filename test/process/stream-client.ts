import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { readOutputs } from "../media/read-media.ts";

/** A response that is read while it comes. */
export interface StreamReader {
  response: Response;
  /** Resolves once media of this many fragments were there, or bytes if it is no MP4. */
  untilMedia(fragments?: number): Promise<void>;
  /** Resolves once there were this many bytes. */
  until(count: number): Promise<void>;
  /** Resolves with all bytes; rejects if the response breaks off. */
  all(): Promise<Buffer>;
  /** What came so far. */
  readonly bytes: Buffer;
}

export async function openStreamReader(url: string): Promise<StreamReader> {
  const response = await fetch(url);
  const chunks: Uint8Array[] = [];
  let received = 0;
  const reader = response.body!.getReader();
  const bytes = () => Buffer.concat(chunks);
  async function next(): Promise<boolean> {
    const { done, value } = await reader.read();
    if (value !== undefined) chunks.push(value);
    received += value?.length ?? 0;
    return !done;
  }
  return {
    response,
    get bytes() {
      return bytes();
    },
    async untilMedia(fragments = 1) {
      while (!hasMedia(bytes(), fragments) && (await next()));
      if (!hasMedia(bytes(), fragments))
        throw new Error(`the stream ended without media after ${bytes().length} bytes`);
    },
    async until(count) {
      while (received < count && (await next()));
      if (received < count) throw new Error(`the stream ended after ${received} bytes`);
    },
    async all() {
      while (await next());
      return bytes();
    },
  };
}

/** Whether there is a part of a frame of so many fragments: of an MP4, bytes after the header of an `mdat`, of WebM in a Cluster. */
function hasMedia(bytes: Buffer, fragments: number): boolean {
  const mark = marks.get(bytes.toString("hex", 4, 8)) ?? marks.get(bytes.toString("hex", 0, 4));
  const found = bytes.subarray(0, -1).toString("latin1");
  return mark === undefined ? bytes.length > 0 : found.split(mark).length > fragments;
}

/** What a fragment begins with, by what a file does. */
const marks: ReadonlyMap<string, string> = new Map([
  [Buffer.from("ftyp").toString("hex"), "mdat"],
  ["1a45dfa3", Buffer.from("1f43b675", "hex").toString("latin1")],
]);

/** Returns the times and hashes of the decoded frames and of the samples, by kind of track. */
export function framesOf(path: string): Record<string, string[]> {
  const tracks = ["-map", "0:v?", "-map", "0:a?"];
  const outputs = [...tracks, "-f", "framemd5", "pipe:1", ...tracks, "-c", "copy", "-f", "framemd5", "pipe:3"];
  const [decoded, copied] = readOutputs("-copyts", "-i", path, ...outputs).map((text) =>
    timedHashesByKind(text.toString()),
  );
  return {
    pictures: decoded!("video"),
    audio: decoded!("audio"),
    videoSamples: copied!("video"),
    audioSamples: copied!("audio"),
  };
}

/** Returns the packets of audio without their times, of which Ogg has its own, and without the first: each container has its own way to hide its start. */
export function packetsOf(path: string): (string | undefined)[] {
  const { audioSamples = [] } = framesOf(path);
  return audioSamples.slice(1).map((line) => line.split(" ").at(-1));
}

/** Reads what FFmpeg writes in the format `framemd5`: lines that begin with the number of a track, whose kind a comment says. */
function timedHashesByKind(text: string): (kind: string) => string[] {
  const kinds = new Map([...text.matchAll(/^#media_type (\d+): (\w+)$/gm)].map(([, track, kind]) => [track, kind]));
  const lines = [...text.matchAll(/^(\d+), *-?\d+, *(-?\d+),.* (\w+)$/gm)];
  if (lines.length === 0) throw new Error(`no frames in what FFmpeg wrote: ${text}`);
  return (kind) => lines.flatMap(([, track, pts, hash]) => (kinds.get(track) === kind ? [`${pts} ${hash}`] : []));
}

export function save(path: string, bytes: Uint8Array): string {
  writeFileSync(path, bytes);
  return path;
}

/** Starts curl; `started` resolves with its first bytes. */
export function runCurl(...args: string[]) {
  const child = spawn("curl", ["-sN", ...args], { stdio: ["ignore", "pipe", "ignore"] });
  const started = once(child.stdout, "data");
  child.stdout.resume();
  return { started, exitCode: once(child, "close").then(([code]) => code as number) };
}
