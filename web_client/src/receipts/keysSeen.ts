import type { Receipt } from "../protocol/codec";

const MAX_REMEMBERED = 256;
/** How long a tap that was over before its chunk was bound stays shown: about a chunk. */
export const TAP_MS = 300;

interface Sent {
  readonly held: readonly string[];
  readonly pressed: string | null; // the key whose press made this state
}

/** Which keys the frame on screen shows as held: the receipt made visible. */
export class KeysSeen {
  readonly #sent = new Map<number, Sent>(); // by seq, oldest first
  #shownSeq = -1;
  #shownSince = 0;
  #held: readonly string[] = [];
  #tapped: readonly string[] = [];

  constructor(readonly nonce: number) {}

  /** State `seq` has been sent. */
  sent(seq: number, held: readonly string[], pressed: string | null): void {
    this.#sent.set(seq, { held, pressed });
    while (this.#sent.size > MAX_REMEMBERED) {
      const [oldest] = this.#sent.keys();
      if (oldest !== undefined) this.#sent.delete(oldest);
    }
  }

  /**
   * A frame is on screen.
   *
   * @returns the codes that its control held, and those that were tapped just before.
   */
  displayed(receipt: Receipt, atMs: number): readonly string[] {
    if (receipt.nonce !== this.nonce) return [];
    if (receipt.seq > this.#shownSeq) this.#show(receipt.seq, atMs);
    return atMs - this.#shownSince < TAP_MS ? [...this.#held, ...this.#tapped] : this.#held;
  }

  #show(newest: number, atMs: number): void {
    const tapped = new Set<string>();
    for (const [seq, { pressed }] of this.#sent) {
      if (seq <= newest && pressed !== null) tapped.add(pressed);
    }
    this.#held = this.#sent.get(newest)?.held ?? [];
    for (const code of this.#held) tapped.delete(code);
    this.#tapped = [...tapped];
    this.#shownSeq = newest;
    this.#shownSince = atMs;
    for (const seq of this.#sent.keys()) if (seq <= newest) this.#sent.delete(seq);
  }
}
