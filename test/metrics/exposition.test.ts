import { expect, it } from "vitest";
import { parseExposition, valueOf } from "./exposition.ts";

const head = "# HELP a_total A\n# TYPE a_total counter\n";
const histogram = (lines: string) => `# HELP h H\n# TYPE h histogram\n${lines}`;

it("reads samples with labels, escapes and special values", () => {
  const text = `${head}a_total{x="a\\"\\\\\\n",y=""} 3\n\n# HELP g G\n# TYPE g gauge\ng -1.5e-3\n`;
  const families = parseExposition(text);
  expect(valueOf(families, "a_total", { x: 'a"\\\n', y: "" })).toBe(3);
  expect(valueOf(families, "g")).toBe(-0.0015);
  expect(valueOf(families, "h")).toBeUndefined();
});

it.each([
  ["no line feed at the end", `${head}a_total 1`],
  ["a sample without HELP and TYPE", "a_total 1\n"],
  ["a family without TYPE", "# HELP a_total A\n"],
  ["TYPE of another family", "# HELP a_total A\n# TYPE b counter\n"],
  ["samples of another family", `${head}b_total 1\n`],
  ["samples that stand apart", `${head}a_total 1\n${head}a_total{x="1"} 1\n`],
  ["a series twice", `${head}a_total{x="1",y="2"} 1\na_total{y="2",x="1"} 1\n`],
  ["a label twice", `${head}a_total{x="1",x="2"} 1\n`],
  ["an open quote", `${head}a_total{x="1} 1\n`],
  ["an unknown escape", `${head}a_total{x="\\t"} 1\n`],
  ["a value that is no number", `${head}a_total one\n`],
  ["a counter below 0", `${head}a_total -1\n`],
  ["a counter of another name", "# HELP a A\n# TYPE a counter\na 1\n"],
  ["an unknown type", "# HELP a A\n# TYPE a number\na 1\n"],
  ["a histogram without +Inf", histogram('h_bucket{le="1"} 1\nh_sum 1\nh_count 1\n')],
  ["buckets that fall", histogram('h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n')],
  ["another count", histogram('h_bucket{le="+Inf"} 1\nh_sum 1\nh_count 2\n')],
])("refuses %s", (_what, text) => {
  expect(() => parseExposition(text)).toThrow(Error);
});
