/**
 * Why a run is ended from outside, as its signal's reason. `leaseLost`: the task is no longer this run's
 * (canceled, deleted, or another claim has it), which touches nothing more. `leaseExpired`: the store was out of
 * reach for too long to be sure of that. `shutdown`: the service stops. In both the task goes back to the
 * queue, if it is still this run's.
 */
export class Interruption extends Error {
  override readonly name = "Interruption";
  readonly kind: keyof typeof messages;

  constructor(kind: keyof typeof messages) {
    super(messages[kind]);
    this.kind = kind;
  }
}

const messages = {
  leaseLost: "the task's lease was lost",
  leaseExpired: "the lease expired while the store was unreachable",
  shutdown: "the service is stopping",
};
