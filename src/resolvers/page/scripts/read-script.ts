import type { Steps } from "../../../parsers/steps.ts";
import { addToParent, type Data } from "./data.ts";
import { readFlatData } from "./flat-data.ts";
import { findNames } from "./media-names.ts";
import { outlineScript } from "./outline.ts";
import { type Nested, ScriptReader } from "./script-reader.ts";
import {
  decodeAngularState,
  decodeJsonInBase64,
  inlineArguments,
  isPercentEncoded,
  unescapeInSteps,
} from "./encodings.ts";

const maxNestedTexts = 50;

/**
 * Reads JavaScript or JSON into `root`: the literals in it, with the names of properties, variables and
 * calls that they belong to. It is no parser: errors in the syntax are passed over, nothing is evaluated,
 * and a text that an expression takes part in (`"a" + b`) is left out. Strings that hold data are read too.
 */
export function* readScript(source: string, root: Data): Steps<void> {
  const pending: Nested[] = [{ source, isEscaped: isPercentEncoded(source), data: root }];
  let count = 0;
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    const decoded = decodeJsonInBase64(next.source);
    const text = next.isEscaped
      ? yield* unescapeInSteps(decoded)
      : yield* inlineArguments(yield* decodeAngularState(decoded));
    const names = yield* findNames(text);
    if (names.length === 0) continue;
    if (!(yield* readFlatData(text, next.data))) {
      const reader = new ScriptReader(text, yield* outlineScript(text, names), next.data);
      yield* reader.read();
      for (const nested of reader.nested) if (count++ < maxNestedTexts) pending.push(nested);
    }
    if (next.data !== root) addToParent(next.data);
  }
}
