import { settingsIn, type TextArea } from "./placement.ts";

const maxRegions = 1_000;

/** Height of a line of a region, percent of the picture (W3C WebVTT §7.2: 5.33vh). */
const lineHeight = 5.33;

/** Whose cues are where players put text anyway (W3C WebVTT §6.2). */
const defaultRegion: ReadonlyMap<string, string> = new Map([
  ["width", "100%"],
  ["lines", "3"],
  ["regionanchor", "0%,100%"],
  ["viewportanchor", "0%,100%"],
]);

/** Reads the regions of a WebVTT file, which few players know: their cues get settings of their own instead. */
export function createVttRegions() {
  const areas = new Map<string, TextArea>();
  let open: Map<string, string> | null = null;
  return {
    /** Reads a line that belongs to no cue; an empty one ends a region. */
    readLine(line: string): void {
      if (line === "" && open !== null) {
        const area = areaOf(open);
        if (area !== null && areas.size < maxRegions) areas.set(open.get("id") ?? "", area);
        open = null;
      } else if (/^REGION[ \t]*$/.test(line)) open = new Map(defaultRegion);
      else if (open !== null) {
        for (const setting of line.split(/[ \t]+/, 100)) {
          const colon = setting.indexOf(":");
          if (colon > 0) open.set(setting.slice(0, colon), setting.slice(colon + 1));
        }
      }
    },
    /** Returns settings of a cue, those of its region instead of the region's name. */
    replaceIn(settings: string, payload: string): string {
      if (!settings.includes("region:")) return settings;
      const stated = settings.split(/[ \t]+/, 100);
      const id = stated.find((setting) => setting.startsWith("region:"))?.slice("region:".length) ?? "";
      const own = stated.filter((setting) => !setting.startsWith("region:"));
      const area = areas.get(id);
      // These count more than the region (§6.3).
      const isPlaced = own.some((setting) => /^(?:line|vertical):/.test(setting));
      if (area === undefined || isPlaced) return own.join(" ");
      const names = new Set(own.map(nameOf));
      const added = settingsIn(area, payload.split("\n").length).filter((setting) => !names.has(nameOf(setting)));
      return [...added, ...own].join(" ");
    },
  };
}

const nameOf = (setting: string): string => setting.split(":", 1)[0]!;

/** Returns `null` if its settings are none, or it is not in the picture. */
function areaOf(settings: ReadonlyMap<string, string>): TextArea | null {
  const width = percentOf(settings.get("width"));
  const [anchorX, anchorY] = percentsOf(settings.get("regionanchor"));
  const [x, y] = percentsOf(settings.get("viewportanchor"));
  const lines = /^\d{1,3}$/.test(settings.get("lines") ?? "") ? Number(settings.get("lines")) : NaN;
  const height = Math.min(100, lines * lineHeight);
  const left = Math.max(0, x - (anchorX / 100) * width);
  const top = Math.max(0, y - (anchorY / 100) * height);
  const area = { left, top, width: Math.min(width, 100 - left), height: Math.min(height, 100 - top) };
  const isVisible = area.width > 0 && area.height > 0;
  return isVisible ? { ...area, lines: "bottom", align: "center" } : null;
}

const percentsOf = (text: string | undefined): [number, number] => {
  const [x, y] = text?.split(",", 3) ?? [];
  return [percentOf(x), percentOf(y)];
};

function percentOf(text: string | undefined): number {
  const percent = Number(/^(\d{1,3}(?:\.\d{1,9})?)%$/.exec(text ?? "")?.[1] ?? NaN);
  return percent <= 100 ? percent : NaN;
}
