import { demandCases } from "./demand-cases.ts";
import { embedCases } from "./embed-cases.ts";
import { interruptedCases } from "./interrupted-cases.ts";
import { playerCases } from "./player-cases.ts";
import type { SiteCase } from "./site-case.ts";
import { vocabularyCases } from "./vocabulary-cases.ts";

/** Pages as people post them; each must end with a file. */
export const siteCases: readonly SiteCase[] = [
  ...vocabularyCases,
  ...playerCases,
  ...embedCases,
  ...demandCases,
  ...interruptedCases,
];
