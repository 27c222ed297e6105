/** A metric and its series, as its `TYPE` line names it. */
interface Family {
  type: string;
  help: string;
  samples: Sample[];
}

export interface Sample {
  /** That of the family, or with `_bucket`, `_sum` or `_count`. */
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

const types: ReadonlySet<string> = new Set(["counter", "gauge", "histogram", "summary", "untyped"]);
const labelPattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)/y;

/**
 * Parses the text format of Prometheus, version 0.0.4, more strictly than Prometheus does: every family has one HELP
 * and one TYPE line before its samples, which stand together; no series occurs twice; the buckets of histograms add up.
 *
 * @throws Error that names the first line that breaks a rule
 */
export function parseExposition(text: string): Map<string, Family> {
  if (!text.endsWith("\n")) throw new Error("the text does not end with a line feed");
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let name = "";
  for (const line of text.slice(0, -1).split("\n")) {
    if (line === "") continue;
    const refuse = (rule: string) => new Error(`${rule}: ${line}`);
    const [, kind, subject = "", rest = ""] = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line) ?? [];
    if (kind === "HELP") {
      if (families.has(subject)) throw refuse("a second HELP, or samples apart");
      families.set(subject, { type: "", help: rest, samples: [] });
      name = subject;
    } else if (kind === "TYPE") {
      const family = families.get(subject);
      if (family === undefined || subject !== name) throw refuse("TYPE does not follow HELP");
      if (family.type !== "" || !types.has(rest)) throw refuse("no such type, or a second one");
      family.type = rest;
    } else {
      const sample = parseSample(line);
      const family = families.get(name);
      if (family === undefined || family.type === "") throw refuse("a sample without a TYPE");
      const suffix = sample.name.slice(name.length);
      const suffixes = family.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
      if (!sample.name.startsWith(name) || !suffixes.includes(suffix)) {
        throw refuse(`a sample among those of ${name}`);
      }
      const key = keyOf(sample);
      if (seen.has(key)) throw refuse("the series occurs twice");
      seen.add(key);
      family.samples.push(sample);
    }
  }
  for (const [family, { type, samples }] of families) {
    if (type === "") throw new Error(`${family} has no TYPE`);
    if (type === "counter") checkCounter(family, samples);
    if (type === "histogram") checkHistogram(family, samples);
  }
  return families;
}

/** Returns the value of the only series of this name with these labels; undefined if there is none. */
export function valueOf(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const samples = [...families.values()].flatMap((family) => family.samples);
  const isWanted = (sample: Sample) =>
    sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value);
  const found = samples.filter(isWanted);
  if (found.length > 1) throw new Error(`${found.length} series are ${name} with these labels`);
  return found[0]?.value;
}

export function countSeries(families: ReadonlyMap<string, Family>): number {
  return families.values().reduce((sum, { samples }) => sum + samples.length, 0);
}

function parseSample(line: string): Sample {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
  if (match === null) throw new Error(`neither a comment nor a sample: ${line}`);
  const [, name = "", labels = "", value = ""] = match;
  return { name, labels: parseLabels(labels, line), value: parseValue(value, line) };
}

function parseLabels(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  labelPattern.lastIndex = 0;
  while (labelPattern.lastIndex < text.length) {
    const match = labelPattern.exec(text);
    if (match === null) throw new Error(`the labels are malformed: ${line}`);
    const [, label = "", value = ""] = match;
    if (Object.hasOwn(labels, label)) throw new Error(`a label occurs twice: ${line}`);
    labels[label] = value.replaceAll(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char));
  }
  return labels;
}

function parseValue(text: string, line: string): number {
  if (text === "+Inf" || text === "-Inf") return Number(`${text}inity`);
  if (text === "NaN") return Number.NaN;
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
  throw new Error(`the value is no number: ${line}`);
}

function keyOf({ name, labels }: Sample): string {
  return JSON.stringify([
    name,
    Object.keys(labels)
      .toSorted()
      .map((label) => [label, labels[label]]),
  ]);
}

function checkCounter(family: string, samples: readonly Sample[]): void {
  if (!family.endsWith("_total")) throw new Error(`the counter ${family} does not end with _total`);
  const wrong = samples.find(({ value }) => !(value >= 0));
  if (wrong !== undefined) throw new Error(`the counter ${family} is ${wrong.value}`);
}

function checkHistogram(family: string, samples: readonly Sample[]): void {
  const groups = Map.groupBy(samples, ({ labels: { le: _bound, ...labels } }) => keyOf({ name: "", labels, value: 0 }));
  for (const group of groups.values()) {
    const of = (suffix: string) => group.filter(({ name }) => name === family + suffix);
    const buckets = of("_bucket");
    const bounds = buckets.map(({ labels }) => parseValue(labels["le"] ?? "", family));
    const counts = buckets.map(({ value }) => value);
    const isRising = (numbers: readonly number[]) =>
      numbers.every((number, i) => i === 0 || number >= (numbers[i - 1] ?? 0));
    if (!isRising(bounds) || !isRising(counts)) throw new Error(`${family}: its buckets fall`);
    if (bounds.at(-1) !== Infinity) throw new Error(`${family}: it has no bucket +Inf`);
    const [count, sum] = [of("_count"), of("_sum")];
    if (count.length !== 1 || sum.length !== 1) throw new Error(`${family}: one sum, one count`);
    if (count[0]?.value !== counts.at(-1)) throw new Error(`${family}: +Inf is not its count`);
  }
}
