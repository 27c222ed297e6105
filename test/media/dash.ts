import { type Rendition, splitWebm } from "./rendition.ts";
import { type Resource, type Resources, resource } from "./resources.ts";

/** A Representation (ISO/IEC 23009-1 §5.3.5) and how its segments are addressed. */
export interface Representation {
  id: string;
  mimeType: string;
  codecs: string;
  size?: { width: number; height: number };
  language?: string;
  /** XML of SegmentTemplate, SegmentList or SegmentBase, with BaseURL where it needs one. */
  addressing: string;
}

/** A static MPD with a Period for each list, each `periodS` long. */
export function mpd(periods: Representation[][], periodS: number): string {
  const body = periods.map(
    (representations, i) =>
      `<Period id="${i}" start="PT${i * periodS}S" duration="PT${periodS}S">\n` +
      `${representations.map(adaptationSet).join("")}</Period>\n`,
  );
  return (
    '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" ' +
    'profiles="urn:mpeg:dash:profile:isoff-live:2011" minBufferTime="PT1S" ' +
    `mediaPresentationDuration="PT${periods.length * periodS}S">\n${body.join("")}</MPD>\n`
  );
}

function adaptationSet({ id, mimeType, codecs, size, language, addressing }: Representation): string {
  const lang = language === undefined ? "" : ` lang="${language}"`;
  const pixels = size === undefined ? "" : ` width="${size.width}" height="${size.height}"`;
  return (
    `<AdaptationSet mimeType="${mimeType}"${lang} segmentAlignment="true">` +
    `<Representation id="${id}" bandwidth="50000" codecs="${codecs}"${pixels}>` +
    `${addressing}</Representation></AdaptationSet>\n`
  );
}

/** `id/init` and `id/1`, `id/2` …, as `$RepresentationID$` and `$Number$` name them. */
export function layNumbered(id: string, rendition: Rendition, ext: string): Resources {
  const type = ext === "webm" ? "video/webm" : "video/mp4";
  const resources: Resources = new Map();
  if (rendition.init !== null) resources.set(`${id}/init.${ext}`, resource(type, rendition.init));
  for (const [i, { data }] of rendition.pieces.entries()) {
    resources.set(`${id}/${i + 1}.${ext}`, resource(type, data));
  }
  return resources;
}

/** `film.mpd`, and segments of a second of WebM files of VP9 and Opus with a cluster for each. */
export function layWebm(video: Buffer, audio: Buffer, durationS: number): Map<string, Resource> {
  const addressing = numberTemplate("webm", 1, 1);
  const sets = [
    { id: "video", mimeType: "video/webm", codecs: "vp9", addressing },
    { id: "audio", mimeType: "audio/webm", codecs: "opus", addressing },
  ];
  return new Map([
    ["film.mpd", resource("application/dash+xml", Buffer.from(mpd([sets], durationS)))],
    ...layNumbered("video", splitWebm(video, 1), "webm"),
    ...layNumbered("audio", splitWebm(audio, 1), "webm"),
  ]);
}

const template = (ext: string, media: string) =>
  `initialization="$RepresentationID$/init.${ext}" media="$RepresentationID$/${media}.${ext}"`;

/** `$Number$` with all segments of one length. */
export function numberTemplate(ext: string, timescale: number, duration: number): string {
  return `<SegmentTemplate ${template(ext, "$Number$")} timescale="${timescale}" duration="${duration}"/>`;
}

/** `$Number$` with a SegmentTimeline that has the segments' own lengths, in ticks of `tick` units. */
export function timelineTemplate(ext: string, { pieces }: Rendition, timescale: number, unit: number): string {
  const lengths = pieces.map(({ durationS }) => Math.round((durationS * timescale) / unit) * unit);
  const runs: { length: number; repeated: number }[] = [];
  for (const length of lengths) {
    const last = runs.at(-1);
    if (last?.length === length) last.repeated += 1;
    else runs.push({ length, repeated: 0 });
  }
  const entries = runs.map(
    ({ length, repeated }, i) =>
      `<S${i === 0 ? ' t="0"' : ""} d="${length}"${repeated === 0 ? "" : ` r="${repeated}"`}/>`,
  );
  return (
    `<SegmentTemplate ${template(ext, "$Number$")} startNumber="1" timescale="${timescale}">` +
    `<SegmentTimeline>${entries.join("")}</SegmentTimeline></SegmentTemplate>`
  );
}

/** A SegmentList of byte ranges of the file `path`, which is init and pieces in a row. */
export function rangeList(path: string, { init, pieces }: Rendition): string {
  let offset = init?.length ?? 0;
  const head = `<BaseURL>${path}</BaseURL><SegmentList timescale="1" duration="1">`;
  const initialization = `<Initialization range="0-${offset - 1}"/>`;
  const urls = pieces.map(({ data }) => {
    const range = `${offset}-${offset + data.length - 1}`;
    offset += data.length;
    return `<SegmentURL mediaRange="${range}"/>`;
  });
  return `${head}${initialization}${urls.join("")}</SegmentList>`;
}
