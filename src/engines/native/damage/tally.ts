/** Counts items that are right, those that are damaged, and the places at which damaged ones follow each other. */
export class Tally {
  right = 0;
  damaged = 0;
  places = 0;
  #isInDamage = false;

  count(isRight: boolean): void {
    if (isRight) this.right += 1;
    else this.damaged += 1;
    if (!isRight && !this.#isInDamage) this.places += 1;
    this.#isInDamage = !isRight;
  }
}
