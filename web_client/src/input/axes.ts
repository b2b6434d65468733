/** Analog motion: sticks of a pad and fingers on glass, as the four axes of a `keys` message. Pure. */

export const AXES = ["forward", "strafe", "yaw", "pitch"] as const;
export type Axis = (typeof AXES)[number];
/** Each −1…1: ahead, to the right, turning right, looking up are positive. */
export type Axes = Readonly<Record<Axis, number>>;

export const STILL: Axes = { forward: 0, strafe: 0, yaw: 0, pitch: 0 };
export const DEAD_ZONE = 0.15; // of a stick's way; sticks do not come back to the very middle
const STEPS = 50; // a finer step is not felt, and would only be sent

export interface Tilt {
  readonly x: number; // to the right
  readonly y: number; // down, as screens and pads count
}

/** How far a stick leans once its dead zone is taken off: the angle stays, the length is 0…1. */
export function lean({ x, y }: Tilt): Tilt {
  const length = Math.hypot(x, y);
  if (!Number.isFinite(length) || length <= DEAD_ZONE) return { x: 0, y: 0 };
  const wanted = Math.min(1, (length - DEAD_ZONE) / (1 - DEAD_ZONE));
  return { x: (x / length) * wanted, y: (y / length) * wanted };
}

/** Two sticks: the left one walks, the right one looks. */
export function axesOf(walk: Tilt, look: Tilt): Axes {
  const left = lean(walk);
  const right = lean(look);
  return { forward: -left.y, strafe: left.x, yaw: right.x, pitch: -right.y };
}

/** What several devices want at once, each axis within −1…1 and in steps that can be felt. */
export function together(wishes: Iterable<Axes>): Axes {
  const sum = { ...STILL };
  for (const wish of wishes) for (const axis of AXES) sum[axis] += wish[axis];
  for (const axis of AXES) {
    const limited = Math.max(-1, Math.min(1, sum[axis]));
    sum[axis] = Math.round(limited * STEPS) / STEPS + 0; // + 0: no −0 on the wire
  }
  return sum;
}

export function alike(one: Axes, other: Axes): boolean {
  return AXES.every((axis) => one[axis] === other[axis]);
}

export function isStill(axes: Axes): boolean {
  return alike(axes, STILL);
}

/** The keys that stand for the two ends of an axis, where a world knows only keys. */
export const KEYS_OF_AXIS: Readonly<Record<Axis, readonly [less: string, more: string]>> = {
  forward: ["KeyS", "KeyW"],
  strafe: ["KeyA", "KeyD"],
  yaw: ["KeyJ", "KeyL"],
  pitch: ["KeyK", "KeyI"],
};
const DOWN_AT = 0.5;
const UP_AT = 0.35;

/** @returns whether a stick that leans this far holds a key down; it lets go a little later. */
export function holdsKey(value: number, heldBefore: boolean): boolean {
  return value >= (heldBefore ? UP_AT : DOWN_AT);
}
