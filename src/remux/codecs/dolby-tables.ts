/** Sampling rates of AC-3 and E-AC-3 by fscod (ETSI TS 102 366 table 4.1). */
export const dolbySampleRates: readonly number[] = [48_000, 44_100, 32_000];
/** Full-range channels by acmod (table 4.3). */
export const dolbyChannels: readonly number[] = [2, 1, 2, 3, 3, 4, 4, 5];
