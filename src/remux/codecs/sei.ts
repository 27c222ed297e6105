/** Whether a supplemental enhancement message (ISO/IEC 14496-10 §7.3.2.3) is of type `wanted`. */
export function holdsMessage(payload: Uint8Array, wanted: number): boolean {
  let at = 0;
  const readNumber = (): number => {
    let value = 0;
    while (payload[at] === 0xff) {
      value += 0xff;
      at++;
    }
    return value + (payload[at++] ?? 0);
  };
  const stopBit = 1;
  while (at + stopBit < payload.length) {
    const type = readNumber();
    const size = readNumber();
    if (type === wanted) return true;
    at += size;
  }
  return false;
}
