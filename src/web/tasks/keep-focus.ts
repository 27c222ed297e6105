/**
 * Keeps the focus near when the element that has it is removed: on its row if that stays, else on the row that is
 * there now, else on `rest`. Rows are the children of `list`; each holds an element with a `tabindex`
 * of -1. Returns the function that ends this.
 */
export function keepFocus(list: HTMLElement, rest: HTMLElement | null): () => void {
  let focused: { element: Element; row: Element; index: number } | undefined;

  function onFocus({ target }: FocusEvent): void {
    const rows = [...list.children];
    const index = rows.findIndex((row) => row.contains(target as Node));
    const row = rows[index];
    focused = row && { element: target as Element, row, index };
  }

  function onRemoval(): void {
    if (focused === undefined || focused.element.isConnected) return;
    const { row, index } = focused;
    focused = undefined;
    // Somebody who is elsewhere by now stays there.
    if (document.activeElement !== document.body) return;
    const near = row.isConnected ? row : (list.children[index] ?? list.lastElementChild);
    (near?.querySelector<HTMLElement>("[tabindex='-1']") ?? rest)?.focus({ preventScroll: true });
  }

  const observer = new MutationObserver(onRemoval);
  observer.observe(list, { childList: true, subtree: true });
  document.addEventListener("focusin", onFocus);
  return () => {
    observer.disconnect();
    document.removeEventListener("focusin", onFocus);
  };
}
