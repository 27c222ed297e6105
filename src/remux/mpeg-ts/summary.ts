import { ServiceError, unlessUnreadable } from "../../model/errors.ts";
import type { AudioChoice } from "../audio-choice.ts";
import { Timelines, discontinuityLimits, isDiscontinuity } from "../timelines.ts";
import { readTimestamp, ticksPerSecond, unwrap } from "../elementary-streams/timestamps.ts";
import { type OpenFile, openFile, readChunks } from "../open-file.ts";
import type { MediaSummary } from "../media-summary.ts";
import { type DemuxerOptions, nullSink, type SampleSink, type UnreadSubtitles } from "../samples.ts";
import { createMpegTsDemuxer } from "./demuxer.ts";
import { createPacketReader, mediaOf, packetLength, pesStart } from "./packets.ts";
import { pidOf } from "./pids.ts";

const maxSizeBytes = 8 << 20;
const start = { timeline: 0, offsetS: null };

/**
 * Reads what the transport stream at `path` has (ISO/IEC 13818-1), to its end, whatever its codecs are. The
 * duration is that from the first presentation time to the end of the last. The size of the video is that
 * of H.264 or HEVC within the first 8 MiB. Each step reads a bounded part.
 * @throws ServiceError `upstream_invalid` if it has no audio or video; `drm_protected` if all of it is
 * scrambled; the file system's own errors.
 */
export function* readMpegTsSummary(path: string): Generator<undefined, MediaSummary> {
  using file = openFile(path);
  const scan = createTimeScan();
  const packets = createPacketReader(scan.read);
  for (const chunk of readChunks(file, file.size)) {
    packets.read(chunk);
    yield;
  }
  const { hasVideo, durationS } = scan.result();
  return { hasVideo, durationS, ...(hasVideo ? readVideoSize(file) : noSize) };
}

/**
 * Has a choice made among the audio tracks of the transport stream at `path`, as its program map, which is within the first 8 MiB,
 * has them. @throws the file system's own errors.
 */
export function chooseMpegTsAudio(path: string, audio: AudioChoice): void {
  using file = openFile(path);
  let isChosen = false;
  const onTracks = () => void (isChosen = true);
  demuxStart(file, { sink: nullSink, kinds: ["video", "audio"], audio, onTracks }, () => isChosen);
}

/** Returns the subtitles of the transport stream at `path`, as its program map within the first 8 MiB has them. @throws the file system's own errors. */
export function readMpegTsSubtitles(path: string): readonly UnreadSubtitles[] {
  using file = openFile(path);
  let found: readonly UnreadSubtitles[] | undefined;
  const onSubtitles = (tracks: readonly UnreadSubtitles[]) => void (found = tracks);
  demuxStart(file, { sink: nullSink, kinds: ["video", "audio"], onSubtitles }, () => found !== undefined);
  return found ?? [];
}

const noSize = { width: null, height: null };

function readVideoSize(file: OpenFile): Pick<MediaSummary, "width" | "height"> {
  let found: { width: number; height: number } | undefined;
  const sink: SampleSink = {
    ...nullSink,
    setFormat({ width, height }) {
      found ??= { width, height };
      return 0;
    },
  };
  demuxStart(file, { sink, kinds: ["video"] }, () => found !== undefined);
  return found ?? noSize;
}

/** Reads the first 8 MiB, at most until `isDone`; what is damaged, or of another codec, says nothing. */
function demuxStart(file: OpenFile, options: Omit<DemuxerOptions, "timelines">, isDone: () => boolean): void {
  const demuxer = createMpegTsDemuxer({ timelines: new Timelines(), ...options });
  unlessUnreadable(() => {
    for (const chunk of readChunks(file, Math.min(file.size, maxSizeBytes))) {
      demuxer.read(chunk, start);
      if (isDone()) return;
    }
    demuxer.flush();
  });
}

/** The presentation times of one PID, in ticks from the first of all. */
interface PidTimes {
  kind: "video" | "audio" | "other";
  /** The latest timestamp, unwrapped. */
  latest: number;
  /** What to add to timestamps; changes when they restart. */
  shift: number;
  least: number;
  most: number;
  count: number;
  /** Transport packets, of all its PES packets and of the latest. */
  packets: number;
  latestPackets: number;
}

/** Wider than those of media that are written: only times that restart count. */
const limits = discontinuityLimits(ticksPerSecond, 10, 3600);

function createTimeScan() {
  const pids = new Map<number, PidTimes>();
  let origin: number | undefined;
  let isScrambled = false;

  function note(pid: number, kind: PidTimes["kind"], stamp: number): void {
    origin ??= stamp;
    const found = pids.get(pid);
    if (found === undefined) {
      const time = unwrap(stamp, origin);
      const at = time - origin;
      const span = { least: at, most: at, count: 1, packets: 1, latestPackets: 1 };
      pids.set(pid, { kind, latest: time, shift: -origin, ...span });
      return;
    }
    const time = unwrap(stamp, found.latest);
    // The times have restarted: they continue after the latest.
    if (isDiscontinuity(time, found.latest, found.latest, limits)) found.shift = found.most + lastStep(found) - time;
    found.latest = time;
    found.least = Math.min(found.least, time + found.shift);
    found.most = Math.max(found.most, time + found.shift);
    found.count++;
    found.latestPackets = 0;
    countPacket(found);
  }

  return {
    /** Reads the packet at `at`; only one that starts a PES packet has a time. */
    read(bytes: Uint8Array, at: number): void {
      const [second = 0, fourth = 0] = [bytes[at + 1], bytes[at + 3]];
      if ((fourth & 0xc0) !== 0) isScrambled = true;
      const pid = pidOf(bytes, at);
      if ((second & 0x40) === 0) countPacket(pids.get(pid));
      if ((second & 0xc0) !== 0x40 || (fourth & 0xd0) !== 0x10) return;
      const body = pesStart(bytes, at);
      if (body < 0 || body + 14 > at + packetLength) return;
      const kind = mediaOf(bytes[body + 3]);
      if (kind === undefined || ((bytes[body + 7] ?? 0) & 0x80) === 0) return;
      note(pid, kind, readTimestamp(bytes, body + 9));
    },
    result() {
      const all = [...pids.values()];
      if (all.length === 0) {
        throw isScrambled
          ? new ServiceError("drm_protected", "the transport stream is scrambled")
          : new ServiceError("upstream_invalid", "the transport stream has no audio or video");
      }
      const main = all.filter(({ kind }) => kind !== "other");
      const shown = main.length > 0 ? main : all;
      const end = Math.max(...shown.map((times) => times.most + lastStep(times)));
      const ticks = end - Math.min(...shown.map(({ least }) => least));
      const hasVideo = all.some(({ kind }) => kind === "video");
      return { hasVideo, durationS: ticks > 0 ? ticks / ticksPerSecond : null };
    },
  };
}

function countPacket(times: PidTimes | undefined): void {
  if (times === undefined) return;
  times.packets++;
  times.latestPackets++;
}

/**
 * How long the last PES packet lasts: one of video as long as they do on average; one of audio has several
 * frames, and the last one often fewer of them.
 */
function lastStep({ kind, least, most, count, packets, latestPackets }: PidTimes): number {
  if (count < 2) return 0;
  const average = (most - least) / (count - 1);
  if (kind === "video") return average;
  return average * Math.min(1, latestPackets / ((packets - latestPackets) / (count - 1)));
}
