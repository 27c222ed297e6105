/** What a track is for (ISO/IEC 23009-1 §5.8.5.5); the others choose nothing. */
export const trackRoles = [
  "main",
  "alternate",
  "supplementary",
  "dub",
  "commentary",
  "description",
  "sign",
  "caption",
  "enhanced-audio-intelligibility",
  "emergency",
  "easyreader",
  "karaoke",
] as const;
export type TrackRole = (typeof trackRoles)[number];

/** What separate audio is to listeners. */
export const audioRoles = ["original", "dub", "description", "commentary"] as const;
export type AudioRole = (typeof audioRoles)[number];
