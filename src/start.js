import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

// Node is started with `config.flags` of package.json, which V8 takes at its start only. A small young generation: garbage
// is freed early. Stripping types still counts as experimental.

// Without the Node that `npm ci` installs, npm takes that of the machine, which may not even be able to load what is below.
if (Number.parseInt(process.version.slice(1), 10) < 26) {
  process.stderr.write(
    `unreel: Node 26 or newer is needed, and this is ${process.version}: npm ci installs one, which npm start uses\n`,
  );
  process.exit(1);
}
const { loadProgram } = await import("./system/load-program.js");

// Downloads keep Node's default of four threads for file I/O busy for seconds; the task store and file
// responses need some too. Up to half of them look up names.
process.env["UV_THREADPOOL_SIZE"] ??= "32";

const isBundled = await loadProgram(new URL("./main.ts", import.meta.url));
// Bundling takes 500 MiB.
const mayBundle = async () => !(await import("./system/memory.ts")).isMemorySmall;
if (!isBundled && process.exitCode === undefined && (await mayBundle())) {
  // For the processes of downloads and pages, and for the next start.
  const program = fileURLToPath(new URL("./system/bundle-programs.ts", import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ["ignore", "ignore", "inherit"] });
  child.on("error", (error) => process.stderr.write(`unreel: programs cannot be bundled: ${error.message}\n`)).unref();
}
