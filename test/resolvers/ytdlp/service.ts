import { never, openHarness } from "./harness.ts";

// A service with an extraction of the URL given, which never ends; prints a line when it runs.
const [url = ""] = process.argv.slice(2);
const { ytDlp } = await openHarness({ timeoutMs: 600_000 });
await ytDlp.findExtractor(new URL(url), never);
process.stdout.write("ready\n");
await ytDlp.extract(new URL(url), { signal: never });
