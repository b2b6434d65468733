/** How long a session has been running, as this page sees it. Pure. */
export class PlayTime {
  #before = 0; // ms
  #since: number | null = null;

  /** It runs, or it does not, from `nowMs` on. */
  running(runs: boolean, nowMs: number): void {
    if (this.#since !== null) this.#before += nowMs - this.#since;
    this.#since = runs ? nowMs : null;
  }

  seconds(nowMs: number): number {
    return (this.#before + (this.#since === null ? 0 : nowMs - this.#since)) / 1000;
  }
}
