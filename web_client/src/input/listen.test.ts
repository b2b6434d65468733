import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { listenToKeyboard } from "./listen";

interface Typed {
  readonly code?: string;
  readonly key?: string;
  readonly repeat?: boolean;
  readonly isComposing?: boolean;
  readonly ctrlKey?: boolean;
  readonly altKey?: boolean;
  readonly metaKey?: boolean;
  readonly altGraph?: boolean;
}

/** The keyboard of a window that is no more than a target of events. */
class FakeWindow extends EventTarget {
  readonly document = Object.assign(new EventTarget(), { visibilityState: "visible" });

  /** @returns whether the browser does its own thing with the key. */
  type(kind: "keydown" | "keyup", typed: Typed): boolean {
    const event = Object.assign(new Event(kind, { cancelable: true }), {
      code: "",
      key: "",
      repeat: false,
      isComposing: false,
      ctrlKey: false,
      altKey: false,
      metaKey: false,
      getModifierState: (name: string) => name === "AltGraph" && typed.altGraph === true,
      ...typed,
    });
    this.dispatchEvent(event);
    return !event.defaultPrevented;
  }
}

describe("listenToKeyboard", () => {
  let window: FakeWindow;
  let heard: string[];
  let playing: boolean;
  let end: () => void;
  const down = (typed: Typed): boolean => window.type("keydown", typed);
  const up = (typed: Typed): boolean => window.type("keyup", typed);

  beforeEach(() => {
    vi.stubGlobal("Element", Date); // the target is none, and so no field of text
    window = new FakeWindow();
    heard = [];
    playing = true;
    end = listenToKeyboard(window as unknown as Window, {
      legend: (code) => ["KeyW", "KeyA", "Space", "ArrowLeft"].includes(code),
      playing: () => playing,
      pressed: (code) => heard.push(`+${code}`),
      released: (code) => heard.push(`-${code}`),
      releaseAll: () => heard.push("none"),
      shortcut: (name) => heard.push(name) > 0,
      other: () => heard.push("other"),
    });
  });
  afterEach(() => {
    end();
    vi.unstubAllGlobals();
  });

  it("goes by the place of a key: W is Z on a French keyboard, a Cyrillic letter on a Russian one", () => {
    down({ code: "KeyW", key: "z" });
    up({ code: "KeyW", key: "z" });
    down({ code: "KeyW", key: "ц" });
    expect(heard).toEqual(["+KeyW", "-KeyW", "+KeyW"]);
  });

  it("AltGr says Ctrl too, on Windows: its keys count, and AltGr itself is none", () => {
    down({ code: "ControlLeft", key: "Control", ctrlKey: true });
    down({ code: "AltRight", key: "AltGraph", ctrlKey: true, altKey: true, altGraph: true });
    down({ code: "KeyW", key: "w", ctrlKey: true, altKey: true, altGraph: true });
    expect(heard).toEqual(["+KeyW"]);
  });

  it.each([
    ["Ctrl+W", { code: "KeyW", key: "w", ctrlKey: true }],
    ["⌘A", { code: "KeyA", key: "a", metaKey: true }],
    ["Ctrl+R", { code: "KeyR", key: "r", ctrlKey: true }],
    ["F5", { code: "F5", key: "F5" }],
    ["F11", { code: "F11", key: "F11" }],
    ["F12", { code: "F12", key: "F12" }],
    ["louder", { code: "AudioVolumeUp", key: "AudioVolumeUp" }],
    ["a picture of the screen", { code: "PrintScreen", key: "PrintScreen" }],
    ["Tab", { code: "Tab", key: "Tab" }],
  ])("%s is the browser's", (_, typed) => {
    expect(down(typed)).toBe(true);
    expect(heard).toEqual([]);
  });

  it("what an input method composes moves nothing", () => {
    down({ code: "KeyW", key: "Process", isComposing: true });
    down({ code: "KeyR", key: "Process", isComposing: true });
    expect(heard).toEqual([]);
    down({ code: "KeyW", key: "Process" }); // it is on, and there is nothing to be written in
    expect(heard).toEqual(["+KeyW"]);
  });

  it("a keyboard on glass that says no code is known by its characters", () => {
    down({ code: "", key: "w" });
    up({ code: "", key: "W" }); // shifted meanwhile
    down({ code: "Unidentified", key: "ArrowLeft" });
    down({ code: "", key: "Unidentified" });
    down({ code: "", key: " " });
    expect(heard).toEqual(["+KeyW", "-KeyW", "+ArrowLeft", "+Space"]);
  });

  it("a key that was down before, elsewhere, only repeats here: it moves nothing", () => {
    down({ code: "KeyW", key: "w", repeat: true });
    down({ code: "KeyR", key: "r", repeat: true });
    expect(heard).toEqual([]);
  });

  it("keys of the world neither scroll nor press buttons, others are left alone", () => {
    expect(down({ code: "Space", key: " " })).toBe(false);
    expect(down({ code: "Space", key: " ", repeat: true })).toBe(false);
    expect(down({ code: "ArrowLeft", key: "ArrowLeft" })).toBe(false);
    expect(down({ code: "ArrowLeft", key: "ArrowLeft", altKey: true })).toBe(true); // back
    expect(down({ code: "KeyW", key: "w" })).toBe(true);
    playing = false;
    expect(down({ code: "Space", key: " " })).toBe(true);
  });

  it("a lone Alt moves no focus while playing, and is never held", () => {
    expect(down({ code: "AltLeft", key: "Alt", altKey: true })).toBe(false);
    expect(up({ code: "AltLeft", key: "Alt" })).toBe(false);
    playing = false;
    expect(down({ code: "AltLeft", key: "Alt", altKey: true })).toBe(true);
    expect(heard).toEqual(["-AltLeft"]);
  });

  it("lets go of all when the window, the tab or ⌘ goes", () => {
    window.dispatchEvent(new Event("blur"));
    window.dispatchEvent(new Event("pagehide"));
    window.document.visibilityState = "hidden";
    window.document.dispatchEvent(new Event("visibilitychange"));
    up({ code: "MetaLeft", key: "Meta" });
    expect(heard).toEqual(["none", "none", "none", "none"]);
  });
});
