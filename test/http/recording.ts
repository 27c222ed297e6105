/** The progress of a live stream that is being recorded. */
export const recording = {
  stage: "downloading",
  downloaded_bytes: 5,
  total_bytes: null,
  speed: null,
  eta: null,
  is_live: true,
} as const;
