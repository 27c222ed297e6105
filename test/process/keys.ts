import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../../src/cli/key.ts", import.meta.url));
/** The compile cache of the commands, as `NODE_COMPILE_CACHE`: it halves the time of a start. */
export const compileCache = fileURLToPath(new URL("../../node_modules/.cache/commands", import.meta.url));

/** Runs the command for keys as its own process, with these settings. */
export async function runKeyProgram(env: Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: compileCache, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  const [stdout, stderr, [code]] = await output;
  return { code: code as number | null, stdout, stderr };
}

/** Adds a key; returns its secret. */
export async function addKey(env: Record<string, string>, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runKeyProgram(env, "add", ...args);
  if (code !== 0) throw new Error(`the key was not added: ${stderr}`);
  return stdout.trim();
}

export function bearer(secret: string): { authorization: string } {
  return { authorization: `Bearer ${secret}` };
}
