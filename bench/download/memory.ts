import { format, printTable, type Target } from "../table.ts";
import { type Bench, segmentBytes } from "./part.ts";
import { openBenchService } from "./service.ts";

/** Peak resident memory of a new service that downloads a stream of half, full and double size. */
export async function measureMemory({ base, maker, largeBytes }: Bench): Promise<Target[]> {
  const rows: string[][] = [];
  const peaks: number[] = [];
  let growth = Number.NaN;
  for (const share of [0.5, 1, 2]) {
    const bytes = share * largeBytes;
    const path = maker.hls(`memory-${share}`, Math.ceil(bytes / segmentBytes), segmentBytes);
    await using service = await openBenchService();
    const idle = service.peakMiB();
    const samples: number[] = [];
    const sampling = setInterval(() => samples.push(service.residentMiB()), 100);
    const { kept } = await service.download(`${base}/${path}`);
    clearInterval(sampling);
    const middle = Math.floor(samples.length / 2);
    growth = Math.max(...samples.slice(middle)) / Math.max(...samples.slice(0, middle));
    const peak = service.peakMiB();
    peaks.push(peak);
    rows.push([`${bytes / 1024 ** 2} MiB`, format(idle), format(peak), format(growth), format(kept)]);
  }
  const head = ["", "idle MiB", "peak MiB", "2nd half : 1st", "s"];
  printTable("resident memory while HLS is downloaded", head, rows);
  const [half = 0, whole = 0, double = 0] = peaks;
  return [
    { name: "peak resident memory, whole size", value: whole, unit: "MiB", atMost: 600 },
    { name: "the same, double size, 2nd half : 1st", value: growth, unit: "×", atMost: 1.1 },
    { name: "peak resident memory, double : half", value: double / half, unit: "×", atMost: 1.1 },
  ];
}
