/** Returns how many places, in words. */
export const places = (count: number): string => (count === 1 ? "1 place" : `${count} places`);
