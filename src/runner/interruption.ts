/**
 * Why a run was interrupted; the reason of its abort signal.
 * - `leaseLost`: the task was canceled, deleted or claimed again; the run changes nothing more.
 * - `leaseExpired`: the store was unreachable for too long to know whether the lease is lost.
 * - `shutdown`: the service is stopping.
 *
 * In the last two cases the task is requeued if the lease still holds it.
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
