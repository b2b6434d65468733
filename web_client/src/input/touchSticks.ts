/** Fingers on glass: the left half is a stick that floats to the finger, the right half looks. Pure. */
import { type Axes, axesOf, type Tilt } from "./axes";

export const REACH = 64; // px from the middle of a stick to full speed

export type Side = "walk" | "look";

/** A finger that steers: where its stick stands, and where the finger is. */
export interface Stick {
  readonly side: Side;
  readonly middle: Tilt;
  readonly finger: Tilt;
}

export class TouchSticks {
  readonly #sticks = new Map<number, Stick>(); // by pointer

  /**
   * A finger comes down. The first of each half steers; further ones count for nothing.
   *
   * @param width of the window. @returns whether it steers.
   */
  down(pointer: number, at: Tilt, width: number): boolean {
    const side: Side = at.x < width / 2 ? "walk" : "look";
    if (this.stick(side) !== null || this.#sticks.has(pointer)) return false;
    this.#sticks.set(pointer, { side, middle: at, finger: at });
    return true;
  }

  /** @returns whether this finger steers. */
  move(pointer: number, at: Tilt): boolean {
    const stick = this.#sticks.get(pointer);
    if (stick === undefined) return false;
    this.#sticks.set(pointer, { ...stick, middle: trailing(stick.middle, at), finger: at });
    return true;
  }

  /** @returns whether this finger was steering. */
  up(pointer: number): boolean {
    return this.#sticks.delete(pointer);
  }

  /** Let go of everything; fingers that are down count again when they come down again. */
  releaseAll(): void {
    this.#sticks.clear();
  }

  stick(side: Side): Stick | null {
    for (const stick of this.#sticks.values()) if (stick.side === side) return stick;
    return null;
  }

  get axes(): Axes {
    return axesOf(tilt(this.stick("walk")), tilt(this.stick("look")));
  }
}

function tilt(stick: Stick | null): Tilt {
  if (stick === null) return { x: 0, y: 0 };
  const { middle, finger } = stick;
  return { x: (finger.x - middle.x) / REACH, y: (finger.y - middle.y) / REACH };
}

/** A finger that goes further drags the stick along, so that turning back is felt at once. */
function trailing(middle: Tilt, finger: Tilt): Tilt {
  const x = finger.x - middle.x;
  const y = finger.y - middle.y;
  const over = Math.hypot(x, y) / REACH;
  if (over <= 1) return middle;
  return { x: finger.x - x / over, y: finger.y - y / over };
}
