import type { HostPause } from "../model/url-parts.ts";

/** How processes that share a store send each other which hosts have asked to be left alone. */
export interface SharedPauses {
  /** Sends it to all processes, also those that start before the pause ends; a pause of the host that ends later stays. */
  share(pause: HostPause): Promise<void>;
  /**
   * Calls `listener` with all pauses that have not ended, then with each that a process shares, until the returned function is
   * called; with some of them twice.
   */
  follow(listener: (pause: HostPause) => void): Promise<() => void>;
}

/** How the processes that share a store send each other what holds for the moment. */
export interface Broadcast {
  /**
   * Sends to all processes that follow now, this one too. What a process sends is received in its order, or not at all.
   *
   * @param text Less than 8,000 bytes.
   */
  send(text: string): Promise<void>;
  /** Calls `listener` with each text that is received, until the returned function is called. */
  follow(listener: (text: string) => void): () => void;
}
