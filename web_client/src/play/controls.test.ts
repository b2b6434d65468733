import { beforeEach, describe, expect, it } from "vitest";
import { type Axes, STILL } from "../input/axes";
import type { ControlView, Keys } from "../protocol/messages";
import { FakeClock } from "../testing/fakeClock";
import { Controls } from "./controls";

const LEGEND: ControlView[] = ["KeyW", "KeyA", "KeyS", "KeyD", "KeyJ", "KeyL"].map((code) => ({
  code,
  label: code,
  aliases: [],
}));
const wish = (part: Partial<Axes>): Axes => ({ ...STILL, ...part });

let clock: FakeClock;
let sent: Keys[];
let controls: Controls;

beforeEach(() => {
  clock = new FakeClock(1000);
  sent = [];
  controls = new Controls(clock, (keys) => sent.push(keys));
});

function begin(axes: readonly string[]): void {
  controls.useLegend(LEGEND, axes);
  controls.begin(7, 0);
  sent.length = 0;
}

describe("a world that knows axes", () => {
  beforeEach(() => {
    begin(["forward", "strafe", "yaw", "pitch"]);
  });

  it("is steered in proportion, by several devices at once", () => {
    controls.steer("pad", wish({ forward: 0.5 }));
    controls.steer("touch", wish({ yaw: -0.3 }));
    clock.step(20);
    expect(sent.at(-1)).toMatchObject({ held: [], axes: { forward: 0.5, yaw: -0.3 } });
  });

  it("hears of a stick on its way some 60 times a second, and of its rest at once", () => {
    for (let way = 1; way <= 50; way += 1) {
      controls.steer("pad", wish({ forward: way / 50 }));
      clock.step(2);
    }
    expect(sent.length).toBeLessThan(15);
    controls.steer("pad", STILL);
    expect(sent.at(-1)?.axes).toBeUndefined();
  });

  it("stands still after everything is let go, and devices are told", () => {
    let told = 0;
    controls.onReleaseAll = () => (told += 1);
    controls.steer("pad", wish({ forward: 1 }));
    clock.step(20);
    controls.releaseAll();
    expect(sent.at(-1)?.axes).toBeUndefined();
    clock.step(200);
    expect(sent.at(-1)?.axes).toBeUndefined();
    expect(told).toBe(1);
  });

  it("each change has a seq of its own, repeats have not", () => {
    controls.steer("pad", wish({ forward: 1 }));
    clock.step(20);
    const { seq } = sent.at(-1) ?? { seq: -1 };
    controls.steer("pad", wish({ forward: 1 }));
    clock.step(300);
    expect(sent.at(-1)?.seq).toBe(seq);
    controls.steer("pad", wish({ forward: 0.9 }));
    clock.step(20);
    expect(sent.at(-1)?.seq).toBe(seq + 1);
  });
});

describe("a world that knows only keys", () => {
  beforeEach(() => {
    begin([]);
  });

  it("is walked by a stick that goes half of its way", () => {
    controls.steer("pad", wish({ forward: 0.4 }));
    expect(sent).toEqual([]);
    controls.steer("pad", wish({ forward: 0.9, strafe: -0.8 }));
    expect(sent.at(-1)).toMatchObject({ held: ["KeyW", "KeyA"], presses: { KeyW: 1, KeyA: 1 } });
    controls.steer("pad", wish({ forward: -0.9 }));
    expect(sent.at(-1)?.held).toEqual(["KeyS"]);
    controls.steer("pad", STILL);
    expect(sent.at(-1)?.held).toEqual([]);
  });

  it("a stick and a key that hold the same are two holders", () => {
    controls.press("KeyW", "keyboard", clock.now());
    controls.steer("pad", wish({ forward: 1 }));
    controls.steer("pad", STILL);
    expect(sent.at(-1)?.held).toEqual(["KeyW"]);
  });
});
