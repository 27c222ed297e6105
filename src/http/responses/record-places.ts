import { createResponsePlaces, type ResponsePlace } from "./response-places.ts";

/** The place of a response that is one record. */
export interface RecordPlace {
  /** Gives the place back early: the record is short, or not in memory for now. */
  release(): void;
  /** Waits for a place again, if it was given back; rejects if the client leaves before. */
  retake(): Promise<void>;
}

type Waiting = Parameters<ReturnType<typeof createResponsePlaces>["wait"]>;

/** Places for responses that are one record each. */
export interface RecordPlaces {
  /** Resolves with the place for the response to a request, whose record is read then; rejects if its client leaves before. */
  wait(...waiting: Waiting): Promise<RecordPlace>;
}

/**
 * Creates places for responses that are one record each: until its client has it, each has its record, JSON and perhaps compressed
 * JSON in memory. A client may ask for one on thousands of connections, and they wait for each other to be compressed.
 */
export function createRecordPlaces(total: number): RecordPlaces {
  const places = createResponsePlaces(total);
  return {
    async wait(...waiting) {
      const [, { raw }] = waiting;
      let place: ResponsePlace | undefined = await places.wait(...waiting);
      // The whole response has been written by then.
      raw.once("prefinish", () => place?.setUnread(true));
      return {
        release() {
          place?.release();
          place = undefined;
        },
        async retake() {
          place ??= await places.wait(...waiting);
        },
      };
    },
  };
}
