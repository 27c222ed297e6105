import { answerParent } from "../child.ts";
import { readPages } from "./pages.ts";
import { type ToolName, tools } from "./tools.ts";

export interface Reading {
  /** CPU time of all threads of the process, including garbage collector and compiler. */
  cpuMs: number;
  wallMs: number;
  /** Whether the tool threw. */
  threw: boolean;
}

/** Runs one tool in a child process; the question is the number of the page to read. */
const [name = "", directory = "", server = ""] = process.argv.slice(2);
const pages = readPages(directory);
const loading = tools[name as ToolName]();

answerParent(async (question): Promise<Reading> => {
  const tool = await loading;
  const index = Number(question);
  const page = pages[index];
  if (page === undefined) throw new RangeError(`there is no page ${index}`);
  let threw = false;
  const start = performance.now();
  const cpu = process.cpuUsage();
  try {
    await tool(page, `${server}/${index}`);
  } catch {
    threw = true;
  }
  const { user, system } = process.cpuUsage(cpu);
  return { cpuMs: (user + system) / 1000, wallMs: performance.now() - start, threw };
});
