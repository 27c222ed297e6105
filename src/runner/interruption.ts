/**
 * Why a run is ended from outside, as its signal's reason. `taken`: the task is no longer this run's
 * (canceled, deleted, or another claim has it), which touches nothing more. `stopping`: the service
 * stops, and the task goes back to the queue.
 */
export class Interruption extends Error {
  override readonly name = "Interruption";
  readonly kind: "taken" | "stopping";

  constructor(kind: "taken" | "stopping") {
    super(kind === "taken" ? "the task is no longer this run's" : "the service is stopping");
    this.kind = kind;
  }
}
