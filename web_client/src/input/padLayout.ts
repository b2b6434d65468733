/** What the numbered axes and buttons of a gamepad are. Pure. */
import type { Tilt } from "./axes";

/** The part of a `Gamepad` that counts. */
export interface PadLike {
  readonly id: string;
  readonly index: number;
  readonly connected: boolean;
  readonly mapping: string;
  readonly axes: readonly number[];
  readonly buttons: readonly { readonly pressed: boolean }[];
}

export const PAD_BUTTONS = [
  "confirm",
  "back",
  "reset",
  "help",
  "pause",
  "up",
  "down",
  "left",
  "right",
] as const;
export type PadButton = (typeof PAD_BUTTONS)[number];

/** Where things are on one kind of pad. */
export interface PadLayout {
  readonly walk: readonly [number, number];
  readonly look: readonly [number, number];
  readonly buttons: Readonly<Partial<Record<PadButton, number>>>;
  /** The directional pad as two axes, as one axis that counts round, or as buttons. */
  readonly cross: { kind: "buttons" } | { kind: "axes"; x: number; y: number } | { kind: "round"; axis: number };
}

const STANDARD: PadLayout = {
  walk: [0, 1],
  look: [2, 3],
  buttons: { confirm: 0, back: 1, reset: 3, help: 8, pause: 9, up: 12, down: 13, left: 14, right: 15 },
  cross: { kind: "buttons" },
};
/** Linux and older browsers, pads that speak XInput: the triggers are axes 2 and 5. */
const RAW_XINPUT: PadLayout = {
  walk: [0, 1],
  look: [3, 4],
  buttons: { confirm: 0, back: 1, reset: 3, help: 6, pause: 7 },
  cross: { kind: "axes", x: 6, y: 7 },
};
/** DirectInput pads: the right stick is Z and its rotation, the triggers lie between them. */
const RAW_DIRECT_INPUT: PadLayout = {
  walk: [0, 1],
  look: [2, 5],
  buttons: { confirm: 1, back: 2, reset: 3, help: 8, pause: 9 },
  cross: { kind: "round", axis: 9 },
};
/** Nothing is known: two sticks one after the other, as the standard counts them. */
const RAW_PLAIN: PadLayout = { ...STANDARD, cross: { kind: "axes", x: 4, y: 5 } };

const REST = -0.9; // triggers rest at −1, sticks in the middle

/** @param pad at rest, as when it is first seen; that tells triggers from sticks. */
export function layoutOf(pad: PadLike): PadLayout {
  if (pad.mapping === "standard") return STANDARD;
  const resting = (axis: number): boolean => (pad.axes[axis] ?? 0) <= REST;
  if (pad.axes.length < 6) return RAW_PLAIN;
  if (resting(3) || resting(4)) return RAW_DIRECT_INPUT;
  if (resting(2) || resting(5)) return RAW_XINPUT;
  if (/x-?box|xinput|045e/i.test(pad.id)) return RAW_XINPUT;
  if (/wireless controller|dualshock|dualsense|054c/i.test(pad.id)) return RAW_DIRECT_INPUT;
  return RAW_PLAIN;
}

export interface PadState {
  readonly walk: Tilt;
  readonly look: Tilt;
  readonly buttons: ReadonlySet<PadButton>;
}

export function readPad(pad: PadLike, layout: PadLayout): PadState {
  const axis = (index: number): number => {
    const value = pad.axes[index] ?? 0;
    return Number.isFinite(value) ? value : 0;
  };
  const buttons = new Set<PadButton>();
  for (const name of PAD_BUTTONS) {
    const index = layout.buttons[name];
    if (index !== undefined && pad.buttons[index]?.pressed === true) buttons.add(name);
  }
  for (const name of crossOf(layout, axis)) buttons.add(name);
  return {
    walk: { x: axis(layout.walk[0]), y: axis(layout.walk[1]) },
    look: { x: axis(layout.look[0]), y: axis(layout.look[1]) },
    buttons,
  };
}

const ROUND: readonly (readonly PadButton[])[] = [
  ["up"],
  ["up", "right"],
  ["right"],
  ["right", "down"],
  ["down"],
  ["down", "left"],
  ["left"],
  ["left", "up"],
];

function crossOf({ cross }: PadLayout, axis: (index: number) => number): readonly PadButton[] {
  switch (cross.kind) {
    case "buttons":
      return [];
    case "axes": {
      const found: PadButton[] = [];
      if (axis(cross.x) < -0.5) found.push("left");
      if (axis(cross.x) > 0.5) found.push("right");
      if (axis(cross.y) < -0.5) found.push("up");
      if (axis(cross.y) > 0.5) found.push("down");
      return found;
    }
    case "round": {
      // From −1 (up) clockwise to 1 in eight places; beyond 1 nothing is pressed; 0 is not on it.
      const value = axis(cross.axis);
      if (value === 0 || value < -1.05 || value > 1.05) return [];
      return ROUND[Math.round(((value + 1) / 2) * 7)] ?? [];
    }
  }
}
