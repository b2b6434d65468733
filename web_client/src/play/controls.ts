import type { Clock } from "../clock";
import { HeldKeys } from "../input/heldKeys";
import { type ControlState, KeysSender } from "../input/sender";
import type { Receipt } from "../protocol/codec";
import type { ControlView, Keys } from "../protocol/messages";
import { KeysSeen } from "../receipts/keysSeen";
import { KeyToPhoton } from "../receipts/keyToPhoton";

const OLDEST_EVENT_MS = 1000; // an event's own time is believed if it is no older than this

/** From keys and fingers to `keys` messages, and from receipts back to what was felt. */
export class Controls {
  readonly #clock: Clock;
  readonly #sender: KeysSender;
  #keys = new HeldKeys([]);
  #keyToPhoton: KeyToPhoton | null = null;
  #seen: KeysSeen | null = null;

  /** Called synchronously whenever a key goes down or up. */
  onHeld: (held: readonly string[]) => void = () => undefined;

  constructor(clock: Clock, send: (keys: Keys) => void) {
    this.#clock = clock;
    this.#sender = new KeysSender(clock, send);
  }

  /** The world says which keys mean something. */
  useLegend(controls: readonly ControlView[]): void {
    this.releaseAll();
    this.#keys = new HeldKeys(controls.flatMap(({ code, aliases }) => [code, ...aliases]));
  }

  knows(code: string): boolean {
    return this.#keys.knows(code);
  }

  get seq(): number | null {
    return this.#keyToPhoton === null ? null : this.#sender.seq;
  }

  get nonce(): number | null {
    return this.#keyToPhoton?.nonce ?? null;
  }

  /** A connection is up: counters, receipts and figures start anew with its nonce. */
  begin(nonce: number, epoch: number): void {
    this.#keyToPhoton = new KeyToPhoton(nonce);
    this.#seen = new KeysSeen(nonce);
    this.#keys.forgetPresses();
    this.#sender.begin(nonce, epoch, this.#state());
    this.#seen.sent(this.#sender.seq, this.#keys.held, null);
  }

  /** The world begins again. */
  newEpoch(epoch: number): void {
    this.#keyToPhoton?.discard();
    this.#sender.newEpoch(epoch);
  }

  /** The connection is gone: nothing is held any more. */
  end(): void {
    this.releaseAll();
    this.#sender.end();
    this.#keyToPhoton = null;
    this.#seen = null;
  }

  /** @param atMs when the event happened. @returns whether it was a press. */
  press(code: string, holder: string, atMs: number): boolean {
    if (!this.#keys.down(code, holder)) return false;
    this.onHeld(this.#keys.held);
    const seq = this.#sender.changed(this.#state());
    if (seq === null) return true;
    this.#seen?.sent(seq, this.#keys.held, code);
    const now = this.#clock.now();
    const believed = atMs <= now && atMs > now - OLDEST_EVENT_MS ? atMs : now;
    this.#keyToPhoton?.pressed(seq, believed);
    return true;
  }

  release(code: string, holder: string): void {
    if (this.#keys.up(code, holder)) this.#changed();
  }

  releaseAll(): void {
    if (this.#keys.releaseAll()) this.#changed();
  }

  /** A frame with this receipt is on screen. */
  displayed(receipt: Receipt, atMs: number): { samples: number[]; shown: readonly string[] } {
    return {
      samples: this.#keyToPhoton?.displayed(receipt, atMs) ?? [],
      shown: this.#seen?.displayed(receipt, atMs) ?? [],
    };
  }

  #changed(): void {
    this.onHeld(this.#keys.held);
    const seq = this.#sender.changed(this.#state());
    if (seq !== null) this.#seen?.sent(seq, this.#keys.held, null);
  }

  #state(): ControlState {
    return { held: this.#keys.held, presses: this.#keys.presses, axes: {} };
  }
}
