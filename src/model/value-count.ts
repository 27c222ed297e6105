/**
 * Counts the values of a JSON text that comes in chunks: what begins it, a list or an object, and what follows a comma. To parse many takes far
 * longer than to count them.
 */
export function createValueCount() {
  const [quote, backslash, comma, list, object] = new TextEncoder().encode('"\\,[{');
  let isText = false;
  let isEscaped = false;
  return {
    count: 0,
    add(chunk: Uint8Array): void {
      for (const byte of chunk) {
        if (isEscaped) isEscaped = false;
        else if (byte === quote) isText = !isText;
        else if (isText) isEscaped = byte === backslash;
        else if (byte === comma || byte === list || byte === object) this.count += 1;
      }
    },
  };
}
