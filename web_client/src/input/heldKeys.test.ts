import { describe, expect, it } from "vitest";
import { HeldKeys, MAX_COUNTED, MAX_HELD } from "./heldKeys";

describe("HeldKeys", () => {
  it("knows only the keys of the legend", () => {
    const keys = new HeldKeys(["KeyW"]);
    expect(keys.down("AltLeft", "keyboard")).toBe(false);
    expect(keys.down("KeyX", "keyboard")).toBe(false);
    expect(keys.held).toEqual([]);
    expect(keys.presses).toEqual({});
  });

  it("counts a press once, however often it repeats", () => {
    const keys = new HeldKeys(["KeyW"]);
    expect(keys.down("KeyW", "keyboard")).toBe(true);
    expect(keys.down("KeyW", "keyboard")).toBe(false);
    expect(keys.presses).toEqual({ KeyW: 1 });
  });

  it("counters only grow, through release and release of everything", () => {
    const keys = new HeldKeys(["KeyW", "KeyA"]);
    keys.down("KeyW", "keyboard");
    keys.up("KeyW", "keyboard");
    keys.down("KeyW", "keyboard");
    keys.releaseAll();
    keys.down("KeyA", "keyboard");
    expect(keys.presses).toEqual({ KeyW: 2, KeyA: 1 });
    keys.forgetPresses();
    expect(keys.presses).toEqual({});
  });

  it("a key held by a finger and the keyboard is up when both have let go", () => {
    const keys = new HeldKeys(["KeyW"]);
    keys.down("KeyW", "keyboard");
    expect(keys.down("KeyW", "pointer-1")).toBe(true);
    expect(keys.up("KeyW", "keyboard")).toBe(false);
    expect(keys.held).toEqual(["KeyW"]);
    expect(keys.up("KeyW", "pointer-1")).toBe(true);
    expect(keys.held).toEqual([]);
    expect(keys.presses).toEqual({ KeyW: 2 });
  });

  it("a key still down after everything was released stays up until pressed again", () => {
    const keys = new HeldKeys(["KeyW"]);
    keys.down("KeyW", "keyboard");
    expect(keys.releaseAll()).toBe(true);
    expect(keys.releaseAll()).toBe(false);
    expect(keys.up("KeyW", "keyboard")).toBe(false);
    expect(keys.held).toEqual([]);
  });

  it("stays within what a message may carry", () => {
    const many = Array.from({ length: 40 }, (_, index) => `Key${index}`);
    const keys = new HeldKeys(many);
    for (const code of many) keys.down(code, "keyboard");
    expect(keys.held).toHaveLength(MAX_HELD);
    expect(Object.keys(keys.presses)).toHaveLength(MAX_COUNTED);
  });
});
