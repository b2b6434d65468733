import { describe, expect, it } from "vitest";
import { FakeClock } from "../testing/fakeClock";
import { type Axes, axesOf, holdsKey, isStill, lean, STILL, together } from "./axes";
import { layoutOf, type PadButton, type PadLike, readPad } from "./padLayout";
import { LOOK_MS, Pads } from "./pads";
import { REACH, TouchSticks } from "./touchSticks";

const pad = (axes: number[], more: Partial<PadLike> = {}): PadLike => ({
  id: "a pad",
  index: 0,
  connected: true,
  mapping: "standard",
  axes,
  buttons: [],
  ...more,
});
const pressing = (...indices: number[]): { pressed: boolean }[] =>
  Array.from({ length: 17 }, (_, index) => ({ pressed: indices.includes(index) }));

describe("lean", () => {
  it("is nothing within the dead zone and everything at the rim", () => {
    expect(lean({ x: 0.1, y: 0.1 })).toEqual({ x: 0, y: 0 });
    expect(lean({ x: 0.15, y: 0 })).toEqual({ x: 0, y: 0 });
    expect(lean({ x: 1, y: 0 })).toEqual({ x: 1, y: 0 });
    expect(lean({ x: 0, y: -1.2 })).toEqual({ x: 0, y: -1 });
  });

  it("begins softly and keeps the angle", () => {
    expect(lean({ x: 0.16, y: 0 }).x).toBeCloseTo(0.0118, 3);
    const { x, y } = lean({ x: 0.6, y: 0.3 });
    expect(y / x).toBeCloseTo(0.5);
    expect(lean({ x: 0.7, y: 0.7 }).x).toBeCloseTo(Math.SQRT1_2, 1);
  });

  it("a broken reading is nothing", () => {
    expect(lean({ x: NaN, y: 0.5 })).toEqual({ x: 0, y: 0 });
  });
});

describe("together", () => {
  it("adds devices and stays within bounds", () => {
    const half: Axes = { ...STILL, forward: 0.6 };
    expect(together([half, half]).forward).toBe(1);
    expect(together([half, { ...STILL, forward: -0.6 }]).forward).toBe(0);
    expect(together([])).toEqual(STILL);
    expect(Object.is(together([{ ...STILL, yaw: -0.001 }]).yaw, 0)).toBe(true);
  });

  it("up is ahead on the left stick and up on the right one", () => {
    const axes = axesOf({ x: 0, y: -1 }, { x: 1, y: 0 });
    expect(together([axes])).toEqual({ forward: 1, strafe: 0, yaw: 1, pitch: 0 });
  });
});

it("a stick holds a key from half of its way, and lets go a little later", () => {
  expect([0.4, 0.5].map((value) => holdsKey(value, false))).toEqual([false, true]);
  expect([0.4, 0.3].map((value) => holdsKey(value, true))).toEqual([true, false]);
});

describe("layoutOf", () => {
  it.each<[string, PadLike, [number, number]]>([
    ["standard", pad([0, 0, 0, 0]), [2, 3]],
    ["four axes", pad([0, 0, 0, 0], { mapping: "" }), [2, 3]],
    ["XInput, triggers at rest", pad([0, 0, -1, 0, 0, -1, 0, 0], { mapping: "" }), [3, 4]],
    ["XInput by its name", pad([0, 0, 0, 0, 0, 0, 0, 0], { mapping: "", id: "Xbox 360" }), [3, 4]],
    ["DirectInput", pad([0, 0, 0, -1, -1, 0, 0, 0, 0, 3.28], { mapping: "" }), [2, 5]],
  ])("%s", (_, one, look) => {
    expect(layoutOf(one).look).toEqual(look);
  });

  it("finds the directional pad wherever it is", () => {
    const names = (one: PadLike): PadButton[] => [...readPad(one, layoutOf(one)).buttons];
    expect(names(pad([], { buttons: pressing(12, 0) }))).toEqual(["confirm", "up"]);
    const xinput = pad([0, 0, -1, 0, 0, -1, 1, -1], { mapping: "" });
    expect(names(xinput)).toEqual(["right", "up"]);
    const direct = (hat: number): PadLike =>
      pad([0, 0, 0, -1, -1, 0, 0, 0, 0, hat], { mapping: "" });
    expect(names(direct(-1))).toEqual(["up"]);
    expect(names(direct(-0.4286))).toEqual(["right"]);
    expect(names(direct(0.1429))).toEqual(["down"]);
    expect(names(direct(3.28))).toEqual([]);
    expect(names(direct(0))).toEqual([]);
  });
});

describe("Pads", () => {
  const play = (): {
    clock: FakeClock;
    list: (PadLike | null)[];
    pads: Pads;
    heard: string[];
    last: () => Axes | undefined;
  } => {
    const clock = new FakeClock();
    const list: (PadLike | null)[] = [];
    const heard: string[] = [];
    const steered: Axes[] = [];
    const pads = new Pads(clock, () => list, {
      steer: (axes) => steered.push(axes),
      pressed: (button) => heard.push(button),
      found: () => heard.push("found"),
      lost: () => heard.push("lost"),
    });
    return { clock, list, pads, heard, last: () => steered.at(-1) };
  };

  it("does nothing while there is none", () => {
    const { clock, pads } = play();
    pads.look();
    expect(clock.pending).toBe(0);
  });

  it("a pad that is plugged in steers, and one that vanishes in silence stops", () => {
    const { clock, list, pads, heard, last } = play();
    list[0] = pad([0, 0, 0, 0]);
    pads.look();
    list[0] = pad([0, -1, 0, 0]);
    clock.step(LOOK_MS);
    expect(last()?.forward).toBe(1);
    list[0] = null; // no event
    clock.step(LOOK_MS);
    expect(last()).toEqual(STILL);
    expect(heard).toEqual(["found", "lost"]);
    expect(clock.pending).toBe(0);
  });

  it("a pad that says that it is not connected is gone too", () => {
    const { clock, list, pads, last } = play();
    list[0] = pad([0, 0, 0, 0]);
    pads.look();
    list[0] = pad([0, -1, 0, 0]);
    clock.step(LOOK_MS);
    list[0] = pad([0, -1, 0, 0], { connected: false });
    clock.step(LOOK_MS);
    expect(last()).toEqual(STILL);
  });

  it("after a release, sticks count again once they have been in the middle", () => {
    const { clock, list, pads, last } = play();
    list[0] = pad([0, 0, 0, 0]);
    pads.look();
    list[0] = pad([0, -1, 0, 0]);
    clock.step(LOOK_MS);
    pads.releaseAll();
    clock.step(10 * LOOK_MS);
    expect(last()).toEqual(STILL);
    list[0] = pad([0.05, 0, 0, 0]);
    clock.step(LOOK_MS);
    list[0] = pad([0, 0.5, 0, 0]);
    clock.step(LOOK_MS);
    expect(last()?.forward).toBeCloseTo(-0.42);
  });

  it("nobody looks while the page is hidden", () => {
    const { clock, list, pads, last } = play();
    list[0] = pad([0, 0, 0, 0]);
    pads.look();
    list[0] = pad([1, 0, 0, 0]);
    clock.step(LOOK_MS);
    pads.awake = false;
    expect(last()).toEqual(STILL);
    expect(clock.pending).toBe(0);
    list[0] = pad([0, 0, 0, 0]);
    pads.awake = true;
    expect(clock.pending).toBe(1);
  });

  it("one that leans when it is plugged in has to come to rest first", () => {
    const { clock, list, pads, last } = play();
    list[0] = pad([0, 0, -1, -1]); // or its right stick is no stick
    pads.look();
    clock.step(1000);
    expect(last()).toBeUndefined();
    list[0] = pad([0, 0, 0, 0]);
    clock.step(LOOK_MS);
    list[0] = pad([0, 0, 1, 0]);
    clock.step(LOOK_MS);
    expect(last()?.yaw).toBe(1);
  });

  it("a button is one press however long it is down", () => {
    const { clock, list, pads, heard } = play();
    list[0] = pad([0, 0, 0, 0], { buttons: pressing(0) });
    pads.look();
    clock.step(5 * LOOK_MS);
    list[0] = pad([0, 0, 0, 0], { buttons: pressing() });
    clock.step(LOOK_MS);
    list[0] = pad([0, 0, 0, 0], { buttons: pressing(0, 9) });
    clock.step(LOOK_MS);
    expect(heard).toEqual(["found", "confirm", "confirm", "pause"]);
  });

  it("the button that makes a pad known chooses, and does nothing else", () => {
    const { clock, list, pads, heard } = play();
    list[0] = pad([0, 0, 0, 0], { buttons: pressing(9) });
    pads.look();
    list[0] = pad([0, 0, 0, 0], { buttons: pressing() });
    clock.step(LOOK_MS);
    list[0] = pad([0, 0, 0, 0], { buttons: pressing(9) });
    clock.step(LOOK_MS);
    expect(heard).toEqual(["found", "pause"]);
  });

  it("two pads steer together, and each has buttons of its own", () => {
    const { clock, list, pads, heard, last } = play();
    list[0] = pad([0, 0, 0, 0]);
    list[1] = pad([0, 0, 0, 0], { index: 1, mapping: "" });
    pads.look();
    list[0] = pad([0, -1, 0, 0], { buttons: pressing(0) });
    list[1] = pad([0, 0, 1, 0], { index: 1, mapping: "" });
    clock.step(LOOK_MS);
    expect(last()).toMatchObject({ forward: 1, yaw: 1 });
    list[1] = pad([0, 1, 0, 0], { index: 1, mapping: "", buttons: pressing(0) });
    clock.step(LOOK_MS);
    expect(last()).toEqual(STILL); // one pulls ahead, the other back
    expect(heard).toEqual(["found", "found", "confirm", "confirm"]);
    list[0] = null;
    clock.step(LOOK_MS);
    expect(last()?.forward).toBe(-1); // the other one steers on
  });
});

describe("TouchSticks", () => {
  it("the left half walks from where the finger came down, the right half looks", () => {
    const sticks = new TouchSticks();
    expect(sticks.down(1, { x: 100, y: 300 }, 800)).toBe(true);
    expect(sticks.down(2, { x: 700, y: 300 }, 800)).toBe(true);
    expect(isStill(sticks.axes)).toBe(true);
    sticks.move(1, { x: 100, y: 300 - REACH });
    sticks.move(2, { x: 700 - REACH, y: 300 });
    expect(together([sticks.axes])).toEqual({ forward: 1, strafe: 0, yaw: -1, pitch: 0 });
  });

  it("leans in proportion, and drags the stick along beyond its reach", () => {
    const sticks = new TouchSticks();
    sticks.down(1, { x: 100, y: 300 }, 800);
    sticks.move(1, { x: 100 + REACH / 2, y: 300 });
    expect(sticks.axes.strafe).toBeCloseTo(0.41, 2);
    sticks.move(1, { x: 100 + 3 * REACH, y: 300 });
    expect(sticks.axes.strafe).toBe(1);
    sticks.move(1, { x: 100 + 2 * REACH, y: 300 }); // back to the middle of the dragged stick
    expect(sticks.axes.strafe).toBe(0);
  });

  it("a third finger, and one that comes up twice, change nothing", () => {
    const sticks = new TouchSticks();
    sticks.down(1, { x: 100, y: 300 }, 800);
    sticks.down(2, { x: 700, y: 300 }, 800);
    sticks.move(1, { x: 100, y: 300 - REACH });
    expect(sticks.down(3, { x: 200, y: 100 }, 800)).toBe(false);
    expect(sticks.move(3, { x: 0, y: 0 })).toBe(false);
    expect(sticks.up(3)).toBe(false);
    expect(sticks.axes.forward).toBe(1);
    expect(sticks.up(1)).toBe(true);
    expect(sticks.up(1)).toBe(false);
    expect(isStill(sticks.axes)).toBe(true);
    expect(sticks.down(3, { x: 200, y: 100 }, 800)).toBe(true);
  });

  it("after a release a finger that is still down steers no more", () => {
    const sticks = new TouchSticks();
    sticks.down(1, { x: 100, y: 300 }, 800);
    sticks.releaseAll();
    expect(sticks.move(1, { x: 0, y: 0 })).toBe(false);
    expect(isStill(sticks.axes)).toBe(true);
  });
});
