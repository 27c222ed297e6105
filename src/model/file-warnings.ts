import { type Static, Type } from "@sinclair/typebox";

/** What may be wrong with a file that a task made: a closed list of codes, each with when it is given. */
export const fileWarnings = {
  frames_missing:
    "media that the manifest lists, or that the server sent, is not in the file: segments that were gone, cut off or had the media of another one, the end of a file that the server itself has only in part, its pages (Ogg) or fragments (MP4) that are missing or out of order, damaged elements or frames (Matroska), packets, tags (FLV), samples (MP4) or frames of audio, frames that cannot be decoded",
  gap: "a track has nothing to play for more than a second or most of a segment, within it, before its start or after its end; or some frames of many that come at equal distances are missing; or segments of a live stream were not listed",
  duration_differs:
    "a track is longer or shorter than its manifest or its source says, by more than a segment and a second; or it is shorter because its last segment does not exist; or the file lasts much less than its page says",
  times_changed:
    "some frames had the same timestamp as another frame, or an earlier one than the frame before; or no timestamp, in video that is not shown in the order of decoding",
  length_unknown:
    "the server stated no length of what it sent and then closed the connection, and its container states none either: the end may be missing",
  end_padding:
    "the audio has padding of its encoder at its end, which the source leaves out; the file, an MP4, does so by an edit list, whose end some players do not read: they play up to 0.1 s more",
  tracks_left:
    "the source has further audio tracks inside the stream that was downloaded, which `audio_languages` did not ask for",
  audio_missing:
    "neither the page nor the media have audio in a language that was asked for; if none is left, the file has the original",
  not_embedded:
    "tags, chapters, cover or subtitles could not be written into a file as published: its container cannot have them, or it is laid out in a way that does not allow it",
  subtitles_missing: "subtitles that were asked for are not there, or cannot be read",
  skip_unavailable:
    "the segments that were to be left out or marked are not known, as SponsorBlock did not answer, or with too many: nothing was left out",
  library_failed:
    "the file is not in the library yet: its disk is full or away, or refuses to be written to; tried again every minute, after which the warning goes",
  track_missing: "the format has video or audio that is not in the file",
  too_high: "the video is taller than `max_height`, and its height was not known before the download",
  stream_lost:
    "the recording stopped before the live stream had ended: its playlist could no longer be read, or listed nothing new",
} as const satisfies Record<string, string>;

/** A code of that list. */
export type FileWarningCode = keyof typeof fileWarnings;

const descriptions = Object.entries(fileWarnings).map(([code, when]) => `\`${code}\`: ${when}`);

/** Stored files may have codes of a newer release, so the schema accepts any. */
export const FileWarning = Type.Object(
  {
    code: Type.String({ description: descriptions.join("; ") }),
    message: Type.String({ description: "what differs, where, and by how much" }),
  },
  { title: "FileWarning" },
);
export type FileWarning = Static<typeof FileWarning>;
