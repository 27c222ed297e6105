import { text as readText } from "node:stream/consumers";
import { ServiceError } from "../../errors.ts";
import type { HttpClient } from "../../net/client.ts";
import type { Format } from "../../page-info.ts";
import { tryParseUrl } from "../../parsers/url.ts";
import { type Metadata, resource } from "./metadata.ts";
import { openMpd } from "../../manifests/dash.ts";
import { formatOf, bestFormats } from "./formats.ts";
import { readHls } from "../../manifests/hls.ts";
import { createFormatIds } from "../../manifests/format-ids.ts";
import type { Manifest } from "../../manifests/manifest.ts";
import { readOembed } from "./vocabularies/oembed.ts";
import type { Medium } from "./resources.ts";

/** Sends the requests that a page's own statements lead to. */
export interface LinkFetcher {
  /** What the oEmbed answer at `url` states; nothing where it cannot be had. */
  readOembed(url: URL): Promise<Metadata>;
  /**
   * The formats of these media, best first, each `format_id` once. At most `maxManifests` manifests are
   * fetched, at once; one that cannot be had stays a format of its own, one that is none is left out.
   */
  listFormats(media: readonly Medium[]): Promise<FormatListing>;
}

/** `isRead`: at least one manifest was. */
export interface FormatListing extends Manifest {
  isRead: boolean;
}

const maxManifests = 3;
const maxManifestBytes = 4 * 1024 * 1024;
const maxOembedBytes = 512 * 1024;

/** Each request may take `timeoutMs`. Rejects only when `signal` is aborted. */
export function createLinkFetcher(
  client: HttpClient,
  signal: AbortSignal,
  timeoutMs: number,
): LinkFetcher {
  return {
    async readOembed(url) {
      const fetched = await attempt((requestSignal) =>
        fetchText(url, maxOembedBytes, requestSignal),
      );
      if (fetched instanceof ServiceError) return {};
      const facts = await attempt(async () => readOembed(fetched.text, fetched.type, fetched.url));
      return facts instanceof ServiceError ? {} : claimOembed(facts, url);
    },

    async listFormats(media) {
      const manifests = media.filter(({ protocol }) => protocol !== "https").slice(0, maxManifests);
      const read = new Map(
        await Promise.all(
          manifests.map(
            async (medium) =>
              [
                medium,
                await attempt((requestSignal) => readManifest(medium, requestSignal)),
              ] as const,
          ),
        ),
      );
      return listing(media, read);
    },
  };

  async function readManifest(
    { url, protocol }: Medium,
    requestSignal: AbortSignal,
  ): Promise<Manifest> {
    const fetched = await fetchText(url, maxManifestBytes, requestSignal);
    return protocol === "m3u8"
      ? readHls(fetched.text, fetched.url)
      : openMpd(fetched.text, fetched.url).listing;
  }

  async function fetchText(url: URL, maxBytes: number, requestSignal: AbortSignal) {
    const answer = await client.get(url, { signal: requestSignal, maxBytes });
    return {
      text: await readText(answer.body),
      type: answer.headers.get("content-type") ?? null,
      url: answer.url,
    };
  }

  /** The page's own facts hold, whatever becomes of what they lead to. */
  async function attempt<T>(
    task: (requestSignal: AbortSignal) => Promise<T>,
  ): Promise<T | ServiceError> {
    const requestSignal = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      return await task(requestSignal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ServiceError) return error;
      if (!requestSignal.aborted) throw error;
      return new ServiceError("upstream_timeout", `no answer within ${timeoutMs} ms`, {
        cause: error,
      });
    }
  }
}

function listing(
  media: readonly Medium[],
  read: ReadonlyMap<Medium, Manifest | ServiceError>,
): FormatListing {
  const manifests = [...read.values()].filter(
    (each): each is Manifest => !(each instanceof ServiceError),
  );
  const formats = media.flatMap((medium): Format[] => {
    const manifest = read.get(medium);
    if (manifest === undefined) return [formatOf(medium)];
    if (!(manifest instanceof ServiceError)) return manifest.formats;
    return manifest.code === "upstream_invalid" ? [] : [formatOf(medium)];
  });
  const uniqueId = createFormatIds();
  return {
    formats: bestFormats(formats).map((format) => ({
      ...format,
      format_id: uniqueId(format.format_id),
    })),
    subtitles: Object.assign({}, ...manifests.map(({ subtitles }) => subtitles).toReversed()),
    duration: manifests.find(({ duration }) => duration !== null)?.duration ?? null,
    live_status: manifests.find((each) => each.live_status !== null)?.live_status ?? null,
    isRead: manifests.length > 0,
  };
}

function claimOembed(facts: ReturnType<typeof readOembed>, base: URL): Metadata {
  const player = tryParseUrl(facts.embed?.url, base);
  const isVideo = facts.type === "video";
  return {
    site_name: facts.provider_name,
    title: facts.title,
    duration: facts.duration,
    uploader: facts.author_name,
    uploader_url: facts.author_url,
    thumbnails: facts.thumbnail === null ? [] : [facts.thumbnail],
    resources:
      player === null || !isVideo
        ? []
        : [
            resource(player, "player", {
              width: facts.embed?.width ?? null,
              height: facts.embed?.height ?? null,
            }),
          ],
    media_type: isVideo ? "video" : null,
  };
}
