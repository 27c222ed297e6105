import { execFileSync } from "node:child_process";
import { mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSecretFile } from "../../src/system/secret-file.ts";
import { makeFolder } from "../folder.ts";

const makePath = () => join(makeFolder(), "link.secret");

test("the secret is made once, for its owner alone", () => {
  const path = makePath();
  const secret = openSecretFile(path);
  expect(secret).toHaveLength(32);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(openSecretFile(path)).toEqual(secret);
});

test("a file of 32 bytes that was there is the secret", () => {
  const path = makePath();
  writeFileSync(path, "s".repeat(32));
  expect(openSecretFile(path).toString()).toBe("s".repeat(32));
});

test.each<[string, (path: string) => void]>([
  ["a pipe", (path) => execFileSync("mkfifo", [path])],
  ["a folder", (path) => mkdirSync(path)],
  ["a link to a device without an end", (path) => symlinkSync("/dev/zero", path)],
  ["a link to nothing", (path) => symlinkSync(`${path}.gone`, path)],
  ["an empty file", (path) => writeFileSync(path, "")],
])("%s in its place is refused at once, by a message that names it", (_, make) => {
  const path = makePath();
  make(path);
  expect(() => openSecretFile(path)).toThrow(`${path} must be a file of 32 bytes`);
});
