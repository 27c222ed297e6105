import { answerParent } from "../child.ts";
import { type WayName, ways } from "./ways.ts";

/** The process of the greedy owner: it never answers. */
const [name = "", service = "", secret = "", slow = ""] = process.argv.slice(2);
answerParent(() => ways[name as WayName].greedy({ service, secret, slow }));
