/** What to do when an attempt to connect has failed. Pure. */
import { backoffMs } from "./backoff";

/** What became of an attempt. */
export type Outcome =
  | { kind: "elsewhere" } // another connection of the session is live
  | { kind: "refused"; code: string } // and trying again will not help
  | { kind: "failed" }; // the service or the network did not get through

export type Next =
  | { kind: "retry"; afterMs: number }
  | { kind: "elsewhere" }
  | { kind: "give-up"; code: string };

const AGAIN_MS = 300; // while an older connection of our own may still count as live
/** A connection counts as live for 3 s after it was last heard. */
const LINGERING_MS = 3500;

export class Redial {
  readonly #random: () => number;
  #attempts = 0;
  readonly #own: boolean;
  #ownUntilMs = Infinity; // from the first such answer: a server that stood still gives it late

  /**
   * @param own whether "elsewhere" may be a connection that we ourselves have lost, after a reload
   * or a break; not so for a tab that was opened beside another.
   */
  constructor(own: boolean, random: () => number) {
    this.#own = own;
    this.#random = random;
  }

  next(outcome: Outcome, nowMs: number): Next {
    switch (outcome.kind) {
      case "elsewhere":
        this.#ownUntilMs = Math.min(this.#ownUntilMs, nowMs + LINGERING_MS);
        return this.#own && nowMs < this.#ownUntilMs
          ? { kind: "retry", afterMs: AGAIN_MS }
          : { kind: "elsewhere" };
      case "refused":
        return { kind: "give-up", code: outcome.code };
      case "failed":
        this.#attempts += 1;
        return { kind: "retry", afterMs: backoffMs(this.#attempts, this.#random()) };
    }
  }

  get attempts(): number {
    return this.#attempts;
  }
}
