/** Displayed frames: how many a second, how evenly, and how many of them show nothing new. Pure. */
import { percentile } from "./percentile";

const WINDOW_MS = 2000; // of the frame rate
const KEPT_MS = 10_000; // of the intervals
const KEPT = 1024;

interface Presented {
  readonly atMs: number;
  readonly count: number; // frames since the one before; more than one if callbacks were missed
  readonly frameId: string | null;
  readonly repeated: boolean;
}

export class DisplayedFrames {
  #presented: Presented[] = [];
  #total: number | null = null;
  #lastId: string | null = null;
  #repeated = 0;
  #anyKnown = false;

  /**
   * A frame is on screen.
   *
   * @param presentedFrames the browser's running count of them.
   */
  displayed(atMs: number, presentedFrames: number): void {
    const count = this.#total === null ? 1 : Math.max(1, presentedFrames - this.#total);
    this.#total = presentedFrames;
    this.#presented.push({ atMs, count, frameId: null, repeated: false });
    while (
      this.#presented.length > KEPT ||
      (this.#presented[0] !== undefined && this.#presented[0].atMs < atMs - KEPT_MS)
    ) {
      this.#presented.shift();
    }
  }

  /** The frame displayed at `atMs` is known to be this one of the server's. */
  identified(atMs: number, frameId: string): void {
    const index = this.#presented.findLastIndex((shown) => shown.atMs === atMs);
    const shown = this.#presented[index];
    const repeated = frameId === this.#lastId;
    this.#lastId = frameId;
    this.#anyKnown = true;
    if (repeated) this.#repeated += 1;
    if (shown !== undefined) this.#presented[index] = { ...shown, frameId, repeated };
  }

  /** A new connection, or a pause: what was before is no interval. */
  interrupt(): void {
    this.#presented = [];
    this.#total = null;
  }

  /** New pictures a second, over the last two seconds; null before there was any. */
  fps(nowMs: number): number | null {
    if (this.#total === null) return null;
    const recent = this.#presented.filter(({ atMs }) => atMs > nowMs - WINDOW_MS);
    const fresh = recent.reduce((sum, { count, repeated }) => sum + count - (repeated ? 1 : 0), 0);
    return fresh / (WINDOW_MS / 1000);
  }

  /** How often the same picture was sent again; null where frames cannot be told apart. */
  get repeated(): number | null {
    return this.#anyKnown ? this.#repeated : null;
  }

  /** The time between neighbouring frames that `share` of them stay below, in ms. */
  intervalMs(share: number): number | null {
    const intervals: number[] = [];
    for (let index = 1; index < this.#presented.length; index += 1) {
      const before = this.#presented[index - 1];
      const shown = this.#presented[index];
      if (before !== undefined && shown?.count === 1) intervals.push(shown.atMs - before.atMs);
    }
    return intervals.length < 10 ? null : percentile(intervals, share);
  }
}
