import { interruptedCases } from "./interrupted-cases.ts";
import type { SiteCase } from "./site-case.ts";
import { vocabularyCases } from "./vocabulary-cases.ts";

/** Pages as people post them; each must end with a file. */
export const siteCases: readonly SiteCase[] = [...vocabularyCases, ...interruptedCases];
