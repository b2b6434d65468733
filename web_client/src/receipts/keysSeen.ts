import type { Receipt } from "../protocol/codec";

const MAX_REMEMBERED = 256;

interface Sent {
  readonly held: readonly string[];
  readonly pressed: string | null; // the key whose press made this state
}

/** Which keys the frame on screen shows as held: the receipt made visible. */
export class KeysSeen {
  readonly #sent = new Map<number, Sent>(); // by seq, oldest first
  #shownSeq = -1;
  #shown: readonly string[] = [];

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
   * @returns the codes that its control held, and those that were tapped since the frame before.
   */
  displayed(receipt: Receipt): readonly string[] {
    if (receipt.nonce !== this.nonce) return [];
    if (receipt.seq <= this.#shownSeq) return this.#shown;
    const codes = new Set(this.#sent.get(receipt.seq)?.held);
    for (const [seq, { pressed }] of this.#sent) {
      if (seq <= this.#shownSeq || seq > receipt.seq) continue;
      if (pressed !== null) codes.add(pressed);
    }
    for (const seq of this.#sent.keys()) if (seq < receipt.seq) this.#sent.delete(seq);
    this.#shownSeq = receipt.seq;
    this.#shown = [...codes];
    return this.#shown;
  }
}
