import { watchTasks } from "../watch/watch-tasks.ts";
import { messageOf } from "../model/errors.ts";

/** Shows the running tasks of a service in the terminal: `node src/cli/watch.ts [url]`; its key is in UNREEL_KEY. */
const { UNREEL_KEY: key } = process.env;
const [base = "http://127.0.0.1:3000", another] = process.argv.slice(2);
const url = URL.parse(base.endsWith("/") ? base : `${base}/`);

if (["help", "--help", "-h"].includes(base)) {
  process.stdout.write(
    "usage: npm run watch [URL]\nURL of the service, default http://127.0.0.1:3000; UNREEL_KEY holds its key.\n",
  );
} else if (another !== undefined) {
  process.stderr.write(`watch: takes one argument, the URL of the service; got ${JSON.stringify(another)} as well\n`);
  process.exitCode = 2;
} else if (url === null || !/^https?:$/.test(url.protocol)) {
  process.stderr.write(`watch: the URL of the service must be http or https, got ${base}\n`);
  process.exitCode = 2;
} else {
  const ending = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => ending.abort());
  process.stdout.on("error", () => ending.abort());
  try {
    await watchTasks({ url, key, output: process.stdout, signal: ending.signal });
  } catch (error) {
    process.stderr.write(`watch: ${messageOf(error)}\n`);
    process.exitCode = 1;
  }
}
