import { type Static, Type } from "@sinclair/typebox";

/** What may be wrong with a file that a task made: a closed list of codes, each with when it is given. */
export const fileWarnings = {
  frames_missing:
    "media that the manifest lists, or that the server sent, are not in the file: segments that were gone, cut off or had the media of another one; an init section that changed during a recording; the end of a file of which the server itself has only a part; pages (Ogg), fragments (MP4) or clusters (Matroska) that are missing or out of order; fragments whose media players do not find; damaged elements or frames (Matroska), packets, tags (FLV), samples (MP4) or frames of audio; packets that a file lacks of the one that it was made of; frames that cannot be decoded",
  gap: "a track has nothing to play for more than a second or most of a segment, before its start, within it or after its end; or some of many equally spaced frames are missing; or segments of a live stream were not listed",
  duration_differs:
    "a track is longer or shorter than its manifest or its source says, by more than a segment and a second; or audio without video is shorter than its list of segments by most of a segment; or a track is shorter because its last segment does not exist; or segments that begin after the end that an MPD states are left out; or the file lasts much less than its page says",
  times_changed:
    "some frames had the same timestamp as another frame, or an earlier one than the frame before; or frames of video that is not shown in decoding order had no timestamp",
  length_unknown:
    "the server closed the connection without having stated the length of what it sent, and the container does not state it either; or a playlist of HLS that is not live does not say that it is complete (`EXT-X-ENDLIST`), and was not seen to stay the same; or a list of segments had more in an earlier run of the task: the end may be missing",
  end_padding:
    "the audio has padding of its encoder at its end, which the source leaves out; in the file, an MP4, an edit list does that, which some players ignore, or nothing does, if the audio was in Ogg: they play up to 0.1 s more",
  tracks_left:
    "the stream that was downloaded contains further audio tracks, which `audio_languages` did not ask for, or further video tracks, of which a file has the first, or transparency of video, which an MP4 cannot have, or encrypted tracks beside others; or a file as published plays another audio track first",
  audio_missing:
    "neither the page nor the media have audio in a language that was asked for; if none of the languages is there, the file has the original; or a Period of an MPD has the audio in another language only, or only as a description",
  not_embedded:
    "tags, chapters, cover or subtitles could not be written into a file as published: its container cannot hold them, or its layout does not allow it; or, with `embed`, none of the page's pictures could be had as a cover",
  subtitles_missing:
    "subtitles that were asked for are not there, cannot be read, or lack segments; or a Period of an MPD has them in another language only",
  skip_unavailable:
    "SponsorBlock did not respond, or responded with too much, so the segments to be left out or marked are not known: nothing was left out",
  library_failed:
    "the file is not in the library yet, as the library's disk is full, missing or not writable; it is tried again every minute until the file is there, and the warning is removed then",
  track_missing:
    "the format or its media list video or audio that is not in the file, or all separate audio that the page lists for a silent video is DRM protected",
  format_left:
    "the server does not have the format that was chosen first (status 401, 403, 404 or 410), so that the file is of the next one; or the page has taller video in a manifest that could not be read",
  too_high: "the video is taller than `max_height`, and its height was not known before the download",
  stream_lost:
    "the recording stopped before the live stream had ended: its playlist could no longer be read or recorded, or listed nothing new",
} as const satisfies Record<string, string>;

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
