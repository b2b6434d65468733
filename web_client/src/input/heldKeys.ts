/** What of the legend is held, by whom, and how often each key went down. Pure. */

export const MAX_HELD = 16; // limits of the `keys` message
export const MAX_COUNTED = 32;

export class HeldKeys {
  readonly #legend: ReadonlySet<string>;
  readonly #holders = new Map<string, Set<string>>(); // code → who holds it, oldest key first
  readonly #presses = new Map<string, number>();

  /** @param legend the codes (aliases included) that mean something in this world. */
  constructor(legend: Iterable<string>) {
    this.#legend = new Set(legend);
  }

  knows(code: string): boolean {
    return this.#legend.has(code);
  }

  /** Whether this holder has the key down. */
  holds(code: string, holder: string): boolean {
    return this.#holders.get(code)?.has(holder) ?? false;
  }

  get held(): string[] {
    return [...this.#holders.keys()].slice(0, MAX_HELD);
  }

  /** Counters since the connection began; they only grow. */
  get presses(): Record<string, number> {
    return Object.fromEntries(this.#presses);
  }

  /**
   * A key goes down, on the keyboard or under a finger.
   *
   * @returns whether that was a press: false for keys of no meaning and for auto-repeat.
   */
  down(code: string, holder: string): boolean {
    if (!this.#legend.has(code)) return false;
    const holders = this.#holders.get(code) ?? new Set();
    if (holders.has(holder)) return false;
    holders.add(holder);
    this.#holders.set(code, holders);
    const count = this.#presses.get(code);
    if (count !== undefined || this.#presses.size < MAX_COUNTED) {
      this.#presses.set(code, (count ?? 0) + 1);
    }
    return true;
  }

  /** A key comes up. @returns whether it is held by nobody now and was before. */
  up(code: string, holder: string): boolean {
    const holders = this.#holders.get(code);
    if (holders === undefined || !holders.delete(holder) || holders.size > 0) return false;
    return this.#holders.delete(code);
  }

  /** Let go of everything: the window is no longer ours. @returns whether anything was held. */
  releaseAll(): boolean {
    const any = this.#holders.size > 0;
    this.#holders.clear();
    return any;
  }

  /** A new connection counts from nothing. */
  forgetPresses(): void {
    this.#presses.clear();
  }
}
