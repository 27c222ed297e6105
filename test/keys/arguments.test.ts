import { expect, test } from "vitest";
import { isHelpWanted, parseKeyCommand } from "../../src/keys/commands.ts";

test.each([
  ["add anna", { command: "add", name: "anna", admin: false, limits: {} }],
  ["add --admin a.b_c-1", { command: "add", name: "a.b_c-1", admin: true, limits: {} }],
  [
    "add anna --rate 60 --max-running 2 --max-queued 100 --max-bytes 999999999999999",
    {
      command: "add",
      name: "anna",
      admin: false,
      limits: { rate: 60, max_running: 2, max_queued: 100, max_bytes: 999_999_999_999_999 },
    },
  ],
  [
    "add anna --webhook http://10.0.0.1/ended?a=b",
    { command: "add", name: "anna", admin: false, limits: {}, webhook: "http://10.0.0.1/ended?a=b" },
  ],
  ["list", { command: "list" }],
  ["remove anna", { command: "remove", name: "anna", last: false }],
  ["remove anna --last", { command: "remove", name: "anna", last: true }],
])("%s", (line, command) => {
  expect(parseKeyCommand(line.split(" "))).toEqual(command);
});

test.each([
  ["", 'the command must be add, list or remove, got ""'],
  ["constructor", 'the command must be add, list or remove, got "constructor"'],
  ["add", "NAME must be 1 to 64 of"],
  ["add Anna", 'got "Anna"'],
  ["add .anna", 'got ".anna"'],
  [`add ${"a".repeat(65)}`, "NAME must be 1 to 64 of"],
  ["add anna bert", 'add takes no argument "bert"'],
  ["list anna", 'list takes no argument "anna"'],
  ["add anna --last", "add has no option --last"],
  ["remove anna --rate 5", "remove has no option --rate"],
  ["add anna --rate 0", "--rate must be an integer from 1 to 1000000, got 0"],
  ["add anna --max-bytes 1e9", '--max-bytes must be an integer from 1 to 999999999999999, got "1e9"'],
  ["add anna --webhook ftp://a.test/", "--webhook must be an http or https URL"],
  ["add anna --webhook HTTPS://a.test/", "--webhook must be an http or https URL"],
  ["add anna --webhook http://user:hidden@a.test/", "without user name and password"],
  ["add anna --owner x", /^Unknown option '--owner'$/],
])("%s is refused", (line, message) => {
  expect(() => parseKeyCommand(line.split(" "))).toThrow(message);
});

test.each([
  ["help", true],
  ["-h", true],
  ["--help", true],
  ["add anna --help", true],
  ["add help", false],
  ["list", false],
])("whether %j asks how the program is used: %s", (line, isWanted) => {
  expect(isHelpWanted(line.split(" "))).toBe(isWanted);
});
