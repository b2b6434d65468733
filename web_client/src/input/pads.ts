import type { Clock } from "../clock";
import { type Axes, axesOf, isStill, STILL, together } from "./axes";
import { layoutOf, type PadButton, type PadLayout, type PadLike, readPad } from "./padLayout";

export const LOOK_MS = 16; // the browser's own pads are no fresher than its frames

export interface PadHandlers {
  readonly steer: (axes: Axes) => void;
  readonly pressed: (button: PadButton) => void;
  readonly found: (id: string) => void;
  readonly lost: () => void;
}

interface Met {
  readonly id: string;
  readonly layout: PadLayout;
  buttons: ReadonlySet<PadButton> | null; // that were down at the last look; null before any
  armed: boolean; // its sticks have been in the middle, so what leans is meant
}

/**
 * Reads the pads for as long as there is one and somebody looks. A pad may vanish without an
 * event: what it held is let go at the next look. One whose sticks never come to rest, worn or
 * of a kind that is not known, does not steer.
 */
export class Pads {
  readonly #clock: Clock;
  readonly #read: () => readonly (PadLike | null)[];
  readonly #handlers: PadHandlers;
  readonly #met = new Map<number, Met>();
  #steered: Axes = STILL;
  #awake = true;
  #cancel: (() => void) | null = null;

  /** @param read `navigator.getGamepads`, or an empty list where there is none. */
  constructor(clock: Clock, read: () => readonly (PadLike | null)[], handlers: PadHandlers) {
    this.#clock = clock;
    this.#read = read;
    this.#handlers = handlers;
  }

  /** How many there are, as far as the last look showed. */
  get count(): number {
    return this.#met.size;
  }

  /** Look now: a pad may have come or gone. */
  look(): void {
    this.#cancel?.();
    this.#cancel = null;
    if (!this.#awake) return;
    const pads = this.#read().filter((pad): pad is PadLike => pad?.connected === true);
    this.#meet(pads);
    this.#take(pads);
    if (pads.length > 0) {
      this.#cancel = this.#clock.after(LOOK_MS, () => {
        this.look();
      });
    }
  }

  /** What leans now is let go, and counts again once the sticks have been in the middle. */
  releaseAll(): void {
    for (const pad of this.#met.values()) pad.armed = false;
    this.#steer(STILL);
  }

  /** Whether anybody looks: a hidden page reads no pads. */
  set awake(awake: boolean) {
    if (awake === this.#awake) return;
    this.#awake = awake;
    this.releaseAll();
    this.look();
  }

  #meet(pads: readonly PadLike[]): void {
    const here = new Map(pads.map((pad) => [pad.index, pad]));
    let lost = false;
    for (const [index, { id }] of this.#met) {
      if (here.get(index)?.id === id) continue;
      this.#met.delete(index);
      lost = true;
    }
    if (lost) {
      this.#steer(STILL);
      this.#handlers.lost();
    }
    for (const pad of pads) {
      if (this.#met.has(pad.index)) continue;
      this.#met.set(pad.index, { id: pad.id, layout: layoutOf(pad), buttons: null, armed: false });
      this.#handlers.found(pad.id);
    }
  }

  #take(pads: readonly PadLike[]): void {
    const fresh: PadButton[] = [];
    const wishes: Axes[] = [];
    for (const pad of pads) {
      const met = this.#met.get(pad.index);
      if (met === undefined) continue;
      const { walk, look, buttons } = readPad(pad, met.layout);
      for (const button of buttons) if (isFresh(button, met.buttons)) fresh.push(button);
      met.buttons = buttons;
      const axes = axesOf(walk, look);
      if (isStill(together([axes]))) met.armed = true;
      if (met.armed) wishes.push(axes);
    }
    this.#steer(together(wishes));
    for (const button of fresh) this.#handlers.pressed(button);
  }

  #steer(axes: Axes): void {
    if (isStill(axes) && isStill(this.#steered)) return;
    this.#steered = axes;
    this.#handlers.steer(axes);
  }
}

/** Browsers show a pad once a button is down: that one says "here I am", or means the choice. */
function isFresh(button: PadButton, before: ReadonlySet<PadButton> | null): boolean {
  return before === null ? button === "confirm" : !before.has(button);
}
