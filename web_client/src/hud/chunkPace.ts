/** How fast chunks really come: time that passed over time they play, over a few seconds. Pure. */
const KEPT_MS = 5000;
const GAP_MS = 1500; // a longer silence is a pause or a world that waits, not slowness

export class ChunkPace {
  #chunks: { readonly atMs: number; readonly mediaMs: number }[] = [];

  arrived(atMs: number, mediaMs: number): void {
    const last = this.#chunks.at(-1);
    if (last !== undefined && atMs - last.atMs > Math.max(GAP_MS, 4 * mediaMs)) this.#chunks = [];
    this.#chunks.push({ atMs, mediaMs });
    this.#chunks = this.#chunks.filter((chunk) => chunk.atMs > atMs - KEPT_MS);
  }

  reset(): void {
    this.#chunks = [];
  }

  /** 1 = as fast as they play, 2 = half as fast; null until it can be told. */
  get factor(): number | null {
    const [first, ...rest] = this.#chunks;
    const last = rest.at(-1);
    if (first === undefined || last === undefined || rest.length < 4) return null;
    const media = rest.reduce((sum, { mediaMs }) => sum + mediaMs, 0);
    return media === 0 ? null : (last.atMs - first.atMs) / media;
  }
}
