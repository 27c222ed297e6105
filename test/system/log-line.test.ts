import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { formatLogLine } from "../../src/system/log-output.ts";

/** Returns what a line of pino's log becomes, without its time. */
function formatted(write: (logger: ReturnType<typeof pino>) => void): string {
  let text = "";
  write(pino({ level: "trace" }, { write: (line: string) => void (text += formatLogLine(line)) }));
  expect(text).toMatch(/^\d\d:\d\d:\d\d\.\d{3} /);
  return text.slice(13);
}

describe("a line of the log for people", () => {
  it("is level, words, then the other members", () => {
    expect(formatted((logger) => logger.info({ status: 200, ms: 1.5, path: "/tasks/" }, "request"))).toBe(
      "info  request status=200 ms=1.5 path=/tasks/\n",
    );
    expect(formatted((logger) => logger.child({ task: "7" }).error("the run failed"))).toBe(
      "error the run failed task=7\n",
    );
  });

  it("has values that are no single word as JSON", () => {
    const values = { text: "a b", none: null, list: [1, "x"], empty: "", pair: "a=b", quote: '"' };
    expect(formatted((logger) => logger.warn(values, "w"))).toBe(
      'warn  w text="a b" none=null list=[1,"x"] empty="" pair="a=b" quote="\\""\n',
    );
  });

  it("is followed by the stack of an error, indented, with its cause", () => {
    const err = new Error("cannot read\nfatal line", { cause: new Error("no disk") });
    const text = formatted((logger) => logger.fatal({ err, code: "x" }, "failed"));
    const lines = text.trimEnd().split("\n");
    expect(lines.slice(0, 2)).toEqual(["fatal failed code=x err=Error: cannot read", "      fatal line"]);
    expect(lines.slice(1).filter((line) => !line.startsWith("      "))).toEqual([]);
    expect(text).toContain("no disk");
  });

  it.each([
    "\u001b[2J\u0007",
    "\r\nfake",
    "\u009b31m",
    "\u202egnp.exe\u2069",
    "\u2028",
    "\ud800",
    "\u{e0041}",
    "\u007f",
  ])("has nothing that controls a terminal: %j", (hostile) => {
    const err = Object.assign(new Error(hostile), { stack: `Error: ${hostile}\n    at ${hostile}` });
    for (const text of [
      formatted((logger) => logger.info(hostile)),
      formatted((logger) => logger.info({ title: hostile, deep: { in: [hostile] }, [hostile]: 1 }, "x")),
      formatted((logger) => logger.info({ err }, "x")),
    ]) {
      expect(text.replaceAll(/\n(?: {6}|$)/g, "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
    }
  });
});
