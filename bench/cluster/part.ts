import type { BenchPostgres } from "../postgres.ts";

/** What every part of the bench is given. */
export interface Bench {
  postgres: BenchPostgres;
  isQuick: boolean;
}
