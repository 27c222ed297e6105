import type { Download } from "../../engine.ts";

/** What a media file states. */
export type MediaInfo = Omit<Download, "path" | "size" | "sha256" | "warnings">;
