interface ClaimLoopOptions {
  hasFreeSlot(): boolean;
  /** Claims and starts the next one; false if there is none. Never rejects. */
  claimNext(): Promise<boolean>;
  /** Nothing more is claimed once it is aborted. */
  signal: AbortSignal;
}

export type ClaimLoop = ReturnType<typeof createClaimLoop>;

/** Claims from a store for as long as there is something to claim and a slot for it. */
export function createClaimLoop({ hasFreeSlot, claimNext, signal }: ClaimLoopOptions) {
  let isRequested = false;
  // Apart from the promise: without a free slot, claiming ends before there is one.
  let isClaiming = false;
  let claiming: Promise<void> | undefined;

  async function claimAll(): Promise<void> {
    while (isRequested && !signal.aborted) {
      isRequested = false;
      while (hasFreeSlot() && !signal.aborted) {
        if (!(await claimNext())) break;
      }
    }
    isClaiming = false;
  }

  return {
    /** Begins to claim; if it is claiming already, it looks once more when that ends. */
    wake(): void {
      isRequested = true;
      if (isClaiming) return;
      isClaiming = true;
      claiming = claimAll();
    },
    /** Resolves once the claim in progress has ended. */
    onIdle: async (): Promise<void> => claiming,
  };
}
