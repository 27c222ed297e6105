const tickMs = 10;

/**
 * Measures milliseconds in ticks of a timer: on a busy machine they take longer, as what is measured does. Returns the
 * function that ends the measurement.
 */
export function startTicks(): () => number {
  let ms = 0;
  const timer = setInterval(() => (ms += tickMs), tickMs);
  return () => {
    clearInterval(timer);
    return ms;
  };
}
