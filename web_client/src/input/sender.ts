import type { Clock } from "../clock";
import type { Keys } from "../protocol/messages";

export interface ControlState {
  readonly held: readonly string[];
  readonly presses: Readonly<Record<string, number>>;
  readonly axes: Readonly<Record<string, number>>;
}

export const BURST_MS = [20, 40, 80] as const; // after a change: the channel may lose messages
export const HELD_MS = 100;
export const IDLE_MS = 500;

const NOTHING: ControlState = { held: [], presses: {}, axes: {} };

/**
 * Sends the whole control state on each change and repeats it, so that a lost message costs
 * milliseconds and never a stuck key. `seq` grows only when the state changes.
 */
export class KeysSender {
  readonly #clock: Clock;
  readonly #send: (keys: Keys) => void;
  #live: { nonce: number; epoch: number } | null = null;
  #state: ControlState = NOTHING;
  #seq = 0;
  #changedAt = 0;
  #burst: number = BURST_MS.length; // repeats of the burst that are done
  #cancel: (() => void) | null = null;

  constructor(clock: Clock, send: (keys: Keys) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  get seq(): number {
    return this.#seq;
  }

  /** A connection is up and its `hello` acknowledged: from now on controls count. */
  begin(nonce: number, epoch: number, state: ControlState): void {
    this.end();
    this.#live = { nonce, epoch };
    this.#seq = 0;
    this.changed(state);
  }

  /** The session's state begins again; older presses are ignored by the server. */
  newEpoch(epoch: number): void {
    if (this.#live !== null) this.#live.epoch = epoch;
  }

  /** The control state is another one now. @returns its `seq`, or null while nothing is sent. */
  changed(state: ControlState): number | null {
    this.#state = state;
    if (this.#live === null) return null;
    this.#seq += 1;
    this.#changedAt = this.#clock.now();
    this.#burst = 0;
    this.#sendNow();
    return this.#seq;
  }

  /** The connection is gone. */
  end(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#live = null;
  }

  #sendNow(): void {
    if (this.#live === null) return;
    const { held, presses, axes } = this.#state;
    this.#send({
      ...this.#live,
      seq: this.#seq,
      held: [...held],
      presses: { ...presses },
      ...(Object.keys(axes).length > 0 ? { axes: { ...axes } } : {}),
    });
    this.#cancel?.();
    this.#cancel = this.#clock.after(this.#pause(), () => {
      this.#sendNow();
    });
  }

  #pause(): number {
    const offset = BURST_MS[this.#burst];
    if (offset !== undefined) {
      this.#burst += 1;
      return Math.max(0, this.#changedAt + offset - this.#clock.now());
    }
    const active = this.#state.held.length > 0 || Object.values(this.#state.axes).some(Boolean);
    return active ? HELD_MS : IDLE_MS;
  }
}
