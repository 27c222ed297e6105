import { readRendition, type Rendition } from "./rendition.ts";
import { dash, resource, type Resources } from "./resources.ts";
import type { Site } from "./site.ts";

export type Addressing = "$Number$" | "$Number$ of a timeline" | "$Time$ of a timeline";

export interface LiveDash {
  addressing: Addressing;
  /** Seconds that are listed, and served, and what was before them until it has been fetched; default all. */
  windowS?: number;
  /** Index of the first piece of a second Period. */
  secondPeriod?: number;
  /** XML in each of its Representations. */
  inSecondPeriod?: string;
  /** How much later than the MPD says pieces are served, seconds. */
  lateS?: number;
  /** How long the MPD takes to arrive after it was written, seconds; the first one arrives at once. */
  slowS?: number;
  /** By how much the server's clock is ahead, seconds. */
  aheadS?: number;
  /** XML of the UTCTiming. */
  timing?: string;
  /** Where the MPD says that it is to be read again, and is served, too. */
  location?: string;
  /** Also once it is static, it lists only the window. */
  isWindowed?: boolean;
  /** It never becomes static. */
  isEndless?: boolean;
  /** Seconds of the stream that are there at the start. */
  startS?: number;
}

const pieces = 6;
const renditions: Readonly<Record<string, Rendition>> = {
  v: readRendition("video.m4s"),
  a: readRendition("audio-en.m4s"),
};

/** All pieces of a second each, of both Periods: `v1/init.m4s`, `v1/7.m4s` … */
export function liveResources(): Resources {
  const resources: Resources = new Map();
  for (const [kind, rendition] of Object.entries(renditions)) {
    for (const period of [1, 2]) {
      resources.set(`${kind}${period}/init.m4s`, resource("video/mp4", rendition.init ?? ""));
      for (const [index, { data }] of rendition.pieces.entries()) {
        for (const name of [index + 1, index * timescale]) {
          resources.set(`${kind}${period}/${name}.m4s`, resource("video/mp4", data));
        }
      }
    }
  }
  return resources;
}

const timescale = 1_000;

/** Serves a live stream of six seconds at `live.mpd` from now on; afterwards the MPD is static. */
export function startLiveDash(site: Site, options: LiveDash): { requested: () => string[] } {
  const { windowS = Infinity, lateS = 0, slowS = 0, aheadS = 0, startS = 2, isEndless = false } = options;
  const clockMs = () => Date.now() + 1000 * aheadS;
  /** Begins with the first request, however long a program takes to send that. */
  let originMs = Number.NaN;
  const nowS = () => (clockMs() - originMs) / 1000;
  /** Pieces that were fetched, of each kind. */
  const fetched = { v: new Set<number>(), a: new Set<number>() };
  const dated = (answer: () => unknown) => (response: { setHeader(name: string, value: string): unknown }) => {
    response.setHeader("date", new Date(clockMs()).toUTCString());
    return answer();
  };
  for (const path of ["live.mpd", ...(options.location === undefined ? [] : [options.location])]) {
    site.answer(path, (response, serve) =>
      dated(async () => {
        const isFirst = Number.isNaN(originMs);
        if (isFirst) originMs = clockMs() - 1000 * startS;
        const mpd = mpdAt(nowS(), originMs, { ...options, windowS, isEndless, firstMissing: firstMissing(fetched) });
        site.resources.set(path, dash(mpd));
        if (!isFirst) site.bytesPerSecond = mpd.length / slowS;
        await serve();
        site.bytesPerSecond = Infinity;
      })(response),
    );
  }
  site.answer("time", (response) => dated(() => response.end(new Date(clockMs()).toISOString()))(response));
  for (const path of site.resources.keys()) {
    const [, kind, name] = /^([va])\d\/(\d+)\.m4s$/.exec(path) ?? [];
    if (name === undefined) continue;
    const isTime = Number(name) === 0 || Number(name) >= timescale;
    const endS = isTime ? Number(name) / timescale + 1 : Number(name);
    const { [kind as "v" | "a"]: known } = fetched;
    site.answer(path, (response, serve) => {
      const isListed = nowS() < endS + windowS + 3 || !known.has(endS - 1);
      const isThere = nowS() >= endS + lateS && (isListed || nowS() > pieces + lateS);
      if (!isThere) return response.writeHead(404).end();
      known.add(endS - 1);
      return serve();
    });
  }
  const requested = () => site.asked.map(({ path }) => path).filter((path) => /\d+\.m4s$/.test(path));
  return { requested };
}

/** Returns the index of the first piece that was not fetched of both kinds. */
function firstMissing({ v, a }: Record<"v" | "a", ReadonlySet<number>>): number {
  let index = 0;
  while (v.has(index) && a.has(index)) index += 1;
  return index;
}

/** How long a busy machine may take from an MPD to the computation of what it lists, seconds. */
const patienceS = 30;

function mpdAt(
  nowS: number,
  originMs: number,
  options: LiveDash & { windowS: number; isEndless: boolean; firstMissing: number },
): string {
  const {
    addressing,
    windowS,
    secondPeriod = pieces,
    inSecondPeriod = "",
    timing = "",
    location,
    isEndless,
    isWindowed = false,
  } = options;
  const isOver = !isEndless && nowS >= pieces;
  const until = Math.min(pieces, Math.floor(nowS));
  const isAll = isOver && !isWindowed;
  const from = isAll ? 0 : Math.max(0, Math.min(until - windowS, options.firstMissing));
  const periods = [
    { id: 1, start: 0, end: secondPeriod },
    { id: 2, start: secondPeriod, end: pieces },
  ].filter(({ start, end }) => end > start && start <= nowS && (end > from || isAll));
  const head = isOver
    ? `type="static" mediaPresentationDuration="PT${pieces}S"`
    : `type="dynamic" minimumUpdatePeriod="PT1S"${windowS === Infinity ? "" : ` timeShiftBufferDepth="PT${windowS + patienceS}S"`}`;
  const bodies = periods.map(({ id, start, end }) => {
    const listed = { from: Math.max(from, start), until: Math.min(until, end) };
    const sets = ["v", "a"].map((kind) => {
      const template = templateOf(addressing, start, listed, kind === "v" ? firstPicture : 0);
      const type = kind === "v" ? "video/mp4" : "audio/mp4";
      const codecs = kind === "v" ? "avc1.64000c" : "mp4a.40.2";
      const representation = `<Representation id="${kind}${id}" bandwidth="50000" codecs="${codecs}">${id === 2 ? inSecondPeriod : ""}</Representation>`;
      return `<AdaptationSet mimeType="${type}">${template}${representation}</AdaptationSet>`;
    });
    return `<Period id="p${id}" start="PT${start}S">${sets.join("")}</Period>`;
  });
  const start = new Date(originMs).toISOString();
  return `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" ${head} availabilityStartTime="${start}">${location === undefined ? "" : `<Location>${location}</Location>`}${bodies.join("")}${timing}</MPD>`;
}

/** When the first picture is presented, in ticks: the pictures before it in the file refer to later ones. */
const firstPicture = 80;

/** The media times of a Period go on from those of the one before. */
function templateOf(
  addressing: Addressing,
  start: number,
  listed: { from: number; until: number },
  first: number,
): string {
  const offset = `timescale="${timescale}" presentationTimeOffset="${start * timescale + first}"`;
  const init = 'initialization="$RepresentationID$/init.m4s"';
  const media = (name: string) => `media="$RepresentationID$/${name}.m4s"`;
  if (addressing === "$Number$") {
    return `<SegmentTemplate ${init} ${media("$Number$")} ${offset} duration="${timescale}" startNumber="${start + 1}"/>`;
  }
  const entries =
    listed.until > listed.from
      ? `<S t="${listed.from * timescale}" d="${timescale}" r="${listed.until - listed.from - 1}"/>`
      : "";
  const timeline = `<SegmentTimeline>${entries}</SegmentTimeline>`;
  const name = addressing === "$Time$ of a timeline" ? "$Time$" : "$Number$";
  return `<SegmentTemplate ${init} ${media(name)} ${offset} startNumber="${listed.from + 1}">${timeline}</SegmentTemplate>`;
}
