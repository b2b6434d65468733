import { describe, expect, it } from "vitest";
import { endsEverything, type KeyDown, meaningOf, scrolls } from "./keyboard";

const legend = (code: string): boolean => ["KeyW", "ArrowLeft", "KeyP"].includes(code);
const down = (code: string, more: Partial<KeyDown> = {}): KeyDown => ({
  code,
  key: "",
  repeat: false,
  ctrlKey: false,
  metaKey: false,
  altGraph: false,
  isComposing: false,
  inTextField: false,
  ...more,
});

describe("meaningOf", () => {
  it.each([
    ["a key of the legend", down("KeyW"), { kind: "press", code: "KeyW" }],
    ["its auto-repeat", down("KeyW", { repeat: true }), { kind: "repeat", code: "KeyW" }],
    ["typing in a field", down("KeyW", { inTextField: true }), { kind: "none" }],
    ["Ctrl+W", down("KeyW", { ctrlKey: true }), { kind: "none" }],
    ["⌘W", down("KeyW", { metaKey: true }), { kind: "none" }],
    [
      "W under AltGr, which says Ctrl too",
      down("KeyW", { ctrlKey: true, altGraph: true }),
      { kind: "press", code: "KeyW" },
    ],
    ["Alt", down("AltLeft", { key: "Alt" }), { kind: "alt" }],
    ["AltGr", down("AltRight", { key: "AltGraph" }), { kind: "none" }],
    ["R", down("KeyR"), { kind: "shortcut", shortcut: "reset" }],
    ["Ctrl+R", down("KeyR", { ctrlKey: true }), { kind: "none" }],
    ["R again by auto-repeat", down("KeyR", { repeat: true }), { kind: "none" }],
    ["?", down("Slash", { key: "?" }), { kind: "shortcut", shortcut: "help" }],
    ["Escape", down("Escape"), { kind: "shortcut", shortcut: "menu" }],
    [
      "P where the world uses it",
      down("KeyP"),
      { kind: "press", code: "KeyP" },
    ],
    ["Tab", down("Tab", { key: "Tab" }), { kind: "none" }],
    ["any other key", down("KeyZ", { key: "z" }), { kind: "other" }],
  ])("%s", (_, event, meaning) => {
    expect(meaningOf(event, legend)).toEqual(meaning);
  });
});

it("only keys that scroll or press buttons are kept from the browser", () => {
  expect(["ArrowUp", "Space", "KeyW"].map(scrolls)).toEqual([true, true, false]);
});

it("the end of ⌘ ends everything that was held under it", () => {
  expect(["MetaLeft", "MetaRight", "KeyW"].map(endsEverything)).toEqual([true, true, false]);
});
