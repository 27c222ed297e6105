/** What frames and ticks of a document last, each a second. */
interface Rates {
  frameRate: number;
  /** Of a frame. */
  subFrames: number;
  tickRate: number;
}

/** Returns the rates that the attributes of `tt` state (TTML1 §6.2), or their defaults. */
export function readRates(attributes: ReadonlyMap<string, string>): Rates {
  const number = (name: string) => {
    const value = Number(attributes.get(name));
    return value > 0 && Number.isFinite(value) ? value : null;
  };
  const [numerator = 1, denominator = 1] = (attributes.get("frameRateMultiplier") ?? "1 1")
    .trim()
    .split(/[\s:]+/, 2)
    .map(Number);
  const ratio = numerator / denominator;
  const frameRate = (number("frameRate") ?? 30) * (ratio > 0 && Number.isFinite(ratio) ? ratio : 1);
  const subFrames = number("subFrameRate") ?? 1;
  const tickRate = number("tickRate") ?? (attributes.has("frameRate") ? frameRate * subFrames : 1);
  return { frameRate, subFrames, tickRate };
}

/** Returns a time expression (TTML1 §10.3.1) in seconds; `null` if it is none. */
export function secondsOf(text: string | undefined, { frameRate, subFrames, tickRate }: Rates): number | null {
  if (text === undefined) return null;
  const stated = text.trim().slice(0, 100);
  const clock = /^(\d{1,6}):(\d{2}):(\d{2})(?:[.,](\d{1,20})|:(\d{1,6})(?:\.(\d{1,6}))?)?$/.exec(stated);
  if (clock !== null) {
    const [, hours, minutes, seconds, fraction = "0", frames = "0", subFrame = "0"] = clock;
    const whole = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    return whole + Number(`0.${fraction}`) + (Number(frames) + Number(subFrame) / subFrames) / frameRate;
  }
  const [, count, unit = ""] = /^(\d{1,20}(?:\.\d{1,20})?)(h|m|s|ms|f|t)?$/.exec(stated) ?? [];
  const units: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 0.001, f: 1 / frameRate, t: 1 / tickRate };
  return count === undefined ? null : Number(count) * (units[unit] ?? 1);
}
