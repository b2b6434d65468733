import type { Clock } from "../clock";

const QUIET_MS = 3000; // without a moving pointer; then the tools fade

/** Whether nobody has stirred for a while; `quiet` on the body says so. */
export class Quiet {
  readonly #clock: Clock;
  #cancel: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Somebody is there: the tools show for a while. */
  stir(): void {
    document.body.classList.remove("quiet");
    this.#cancel?.();
    this.#cancel = this.#clock.after(QUIET_MS, () => {
      document.body.classList.add("quiet");
    });
  }
}
