import type { Clock } from "../clock";
import type { Api } from "../session/api";

const FIRST_MS = 500;
const AGAIN_MS = 1000;
const RARELY_MS = 4000; // once it has taken long
const LONG_MS = 60_000;

/** What is known of a service that went away under the player. */
export interface Awaited {
  readonly ready: boolean;
  /** What it is doing, where it says so. */
  readonly stage: string | null;
}

/** Asks a service that went away, again and again, whether one can play again. */
export class Comeback {
  readonly #api: Pick<Api, "readiness">;
  readonly #clock: Clock;
  readonly #changed: () => void;
  #awaited: Awaited | null = null;
  #began = 0;
  #cancel: (() => void) | null = null;

  /** Whether anybody looks; nobody is asked while the page is hidden. */
  awake = true;

  constructor(api: Pick<Api, "readiness">, clock: Clock, changed: () => void) {
    this.#api = api;
    this.#clock = clock;
    this.#changed = changed;
  }

  /** Null while nothing is waited for. */
  get awaited(): Awaited | null {
    return this.#awaited;
  }

  /** Wait for it, or do not. */
  set wanted(wanted: boolean) {
    if (wanted === (this.#awaited !== null)) return;
    this.#cancel?.();
    this.#cancel = null;
    this.#awaited = wanted ? { ready: false, stage: null } : null;
    if (!wanted) return;
    this.#began = this.#clock.now();
    this.#askIn(FIRST_MS);
  }

  #askIn(ms: number): void {
    this.#cancel = this.#clock.after(ms, () => void this.#ask());
  }

  async #ask(): Promise<void> {
    const asked = this.#awaited;
    if (this.awake) {
      const answer = await this.#api.readiness();
      if (asked === null || this.#awaited !== asked) return; // nobody waits any more
      this.#awaited = { ready: answer?.ready === true, stage: answer?.stage ?? null };
      this.#changed();
      if (this.#awaited.ready) return;
    }
    const waited = this.#clock.now() - this.#began;
    this.#askIn(waited > LONG_MS ? RARELY_MS : AGAIN_MS);
  }
}
