import type { Clock } from "../clock";
import {
  alike,
  AXES,
  type Axes,
  type Axis,
  holdsKey,
  isStill,
  KEYS_OF_AXIS,
  STILL,
  together,
} from "../input/axes";
import { HeldKeys } from "../input/heldKeys";
import { type ControlState, KeysSender } from "../input/sender";
import type { Receipt } from "../protocol/codec";
import type { ControlView, Keys } from "../protocol/messages";
import { KeysSeen } from "../receipts/keysSeen";
import { KeyToPhoton } from "../receipts/keyToPhoton";

const OLDEST_EVENT_MS = 1000; // an event's own time is believed if it is no older than this
const AXES_MS = 15; // a stick on its way is told no more often than this

/** From keys and fingers to `keys` messages, and from receipts back to what was felt. */
export class Controls {
  readonly #clock: Clock;
  readonly #sender: KeysSender;
  #keys = new HeldKeys([]);
  #keyToPhoton: KeyToPhoton | null = null;
  #seen: KeysSeen | null = null;
  #analog: readonly Axis[] = []; // axes that the world knows; others are keys to it
  readonly #wishes = new Map<string, Axes>(); // by device
  #axes: Axes = STILL;
  #axesSentAt = -Infinity;
  #cancelAxes: (() => void) | null = null;

  /** Called synchronously whenever a key goes down or up. */
  onHeld: (held: readonly string[]) => void = () => undefined;
  /** The same for what leans. */
  onAxes: (axes: Axes) => void = () => undefined;
  /** Everything was let go: devices that still lean have to come to rest before they count. */
  onReleaseAll: () => void = () => undefined;

  constructor(clock: Clock, send: (keys: Keys) => void) {
    this.#clock = clock;
    this.#sender = new KeysSender(clock, send);
  }

  /** The world says which keys and axes mean something. */
  useLegend(controls: readonly ControlView[], axes: readonly string[]): void {
    this.releaseAll();
    this.#analog = AXES.filter((axis) => axes.includes(axis));
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
    const leaned = this.#wishes.size > 0 && !isStill(this.#axes);
    this.#wishes.clear();
    this.#axes = STILL;
    if (this.#keys.releaseAll() || leaned) this.#changed();
    if (leaned) this.onAxes(STILL);
    this.onReleaseAll();
  }

  /** A stick or a finger leans. What a world has no axis for holds its keys. */
  steer(device: string, wish: Axes): void {
    this.#wishes.set(device, wish);
    const wanted = together(this.#wishes.values());
    if (alike(wanted, this.#axes)) return;
    this.#axes = wanted;
    this.onAxes(wanted);
    for (const axis of AXES) if (!this.#analog.includes(axis)) this.#lean(axis, wanted[axis]);
    if (isStill(wanted)) this.#sendAxes();
    else this.#cancelAxes ??= this.#clock.after(this.#untilAxes(), () => { this.#sendAxes(); });
  }

  /** A frame with this receipt is on screen. */
  displayed(
    receipt: Receipt,
    atMs: number,
    knownSinceMs?: number,
  ): { samples: number[]; shown: readonly string[] } {
    return {
      samples: this.#keyToPhoton?.displayed(receipt, atMs, knownSinceMs) ?? [],
      shown: this.#seen?.displayed(receipt, atMs) ?? [],
    };
  }

  #lean(axis: Axis, value: number): void {
    const [less, more] = KEYS_OF_AXIS[axis];
    for (const [code, way] of [[less, -value], [more, value]] as const) {
      const held = this.#keys.holds(code, axis);
      if (!holdsKey(way, held)) this.release(code, axis);
      else if (!held) this.press(code, axis, this.#clock.now());
    }
  }

  #untilAxes(): number {
    return Math.max(0, this.#axesSentAt + AXES_MS - this.#clock.now());
  }

  #sendAxes(): void {
    this.#cancelAxes?.();
    this.#cancelAxes = null;
    if (this.#analog.length === 0) return;
    this.#axesSentAt = this.#clock.now();
    const seq = this.#sender.changed(this.#state());
    if (seq !== null) this.#seen?.sent(seq, this.#keys.held, null);
  }

  #changed(): void {
    this.onHeld(this.#keys.held);
    const seq = this.#sender.changed(this.#state());
    if (seq !== null) this.#seen?.sent(seq, this.#keys.held, null);
  }

  #state(): ControlState {
    const axes: Record<string, number> = {};
    for (const axis of this.#analog) if (this.#axes[axis] !== 0) axes[axis] = this.#axes[axis];
    return { held: this.#keys.held, presses: this.#keys.presses, axes };
  }
}
