import type { BenchPostgres } from "../postgres.ts";

/** The parameters of every part of the benchmark. */
export interface Bench {
  postgres: BenchPostgres;
  isQuick: boolean;
}
