/** What a file states of its media. */
export interface MediaSummary {
  hasVideo: boolean;
  /** Seconds; `null`: not stated. */
  durationS: number | null;
  /** Of the first format of the video, pixels as displayed; `null`: no video, or not known. */
  width: number | null;
  height: number | null;
}
