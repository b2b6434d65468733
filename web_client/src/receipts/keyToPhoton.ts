import type { Receipt } from "../protocol/codec";

export const MAX_PENDING = 64;

/** Key-to-photon on this client's clock: key press → first displayed frame that covers it. */
export class KeyToPhoton {
  readonly #pressedAt = new Map<number, number>(); // seq → ms, oldest first

  /** @param nonce of this connection: a reload or a reconnect starts anew. */
  constructor(readonly nonce: number) {}

  /** @param atMs when the key event happened, on the scale of `performance.now()`. */
  pressed(seq: number, atMs: number): void {
    this.#pressedAt.set(seq, atMs);
    while (this.#pressedAt.size > MAX_PENDING) {
      // A receipt may never come.
      const [oldest] = this.#pressedAt.keys();
      if (oldest !== undefined) this.#pressedAt.delete(oldest);
    }
  }

  /** Presses so far will never be seen: the world has begun again. */
  discard(): void {
    this.#pressedAt.clear();
  }

  /**
   * A frame is on screen.
   *
   * @param knownSinceMs since when it is known of every displayed frame what it shows. A press
   * before that may have been on screen without anybody knowing: it gives no sample.
   * @returns the latencies, in ms, that its receipt settles.
   */
  displayed(receipt: Receipt, atMs: number, knownSinceMs = -Infinity): number[] {
    if (receipt.nonce !== this.nonce) return [];
    const settled = [...this.#pressedAt].filter(([seq]) => seq <= receipt.seq);
    for (const [seq] of settled) this.#pressedAt.delete(seq);
    return settled.flatMap(([, pressedAt]) => (pressedAt < knownSinceMs ? [] : atMs - pressedAt));
  }
}
