/** Whether the world runs slower than it should, and on which side that is. Pure. */

export type Slow = { side: "server"; percent: number; players: number } | { side: "page" } | null;

const SERVER_SLOW = 1.3; // chunk period over media duration; paced just in time it is about 1
const SERVER_FINE = 1.1;
const PAGE_SLOW = 0.25; // share of decoded frames that this computer dropped
const PAGE_FINE = 0.1;
const PATIENCE = 5; // readings in a row before anything is said or taken back

export class Slowness {
  #server = { slow: false, streak: 0 };
  #page = { slow: false, streak: 0 };
  #factor = 1;

  /**
   * One reading, about once a second while playing.
   *
   * @param factor `real_time_factor` of the newest chunk; null where there was none since.
   * @param droppedShare of the frames received since the last reading; null where unknown.
   */
  read(factor: number | null, droppedShare: number | null): void {
    if (factor !== null) {
      this.#factor = factor;
      step(this.#server, factor > SERVER_SLOW, factor < SERVER_FINE);
    }
    if (droppedShare !== null) {
      step(this.#page, droppedShare > PAGE_SLOW, droppedShare < PAGE_FINE);
    }
  }

  state(players: number): Slow {
    if (this.#server.slow) {
      return { side: "server", percent: Math.max(1, Math.round(100 / this.#factor)), players };
    }
    return this.#page.slow ? { side: "page" } : null;
  }

  reset(): void {
    this.#server = { slow: false, streak: 0 };
    this.#page = { slow: false, streak: 0 };
  }
}

function step(side: { slow: boolean; streak: number }, bad: boolean, good: boolean): void {
  const turning = side.slow ? good : bad;
  side.streak = turning ? side.streak + 1 : 0;
  if (side.streak >= PATIENCE) {
    side.slow = !side.slow;
    side.streak = 0;
  }
}
