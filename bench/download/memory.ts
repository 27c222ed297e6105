import { format, printTable, type Target } from "../table.ts";
import { type Bench, segmentBytes } from "./part.ts";
import { openBenchService } from "./service.ts";

/** Peak resident memory of a fresh service that downloads a stream of half, whole and double size. */
export async function measureMemory({ base, maker, largeBytes }: Bench): Promise<Target[]> {
  const rows: string[][] = [];
  const peaks: number[] = [];
  for (const share of [0.5, 1, 2]) {
    const bytes = share * largeBytes;
    const path = maker.hls(`memory-${share}`, Math.ceil(bytes / segmentBytes), segmentBytes);
    await using service = await openBenchService();
    const idle = service.peakMiB();
    const { kept } = await service.download(`${base}/${path}`);
    const peak = service.peakMiB();
    peaks.push(peak);
    rows.push([`${bytes / 1024 ** 2} MiB`, format(idle), format(peak), format(kept)]);
  }
  printTable("resident memory while HLS is downloaded", ["", "idle MiB", "peak MiB", "s"], rows);
  const [half = 0, whole = 0, double = 0] = peaks;
  return [
    { name: "peak resident memory, whole size", value: whole, unit: "MiB", atMost: 600 },
    { name: "peak resident memory, double : half", value: double / half, unit: "×", atMost: 1.1 },
  ];
}
