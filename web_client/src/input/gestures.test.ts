import { beforeEach, describe, expect, it } from "vitest";
import { guardGestures } from "./gestures";

/** An element that lies within what `selectors` name. */
class FakeElement extends EventTarget {
  constructor(readonly selectors: readonly string[]) {
    super();
  }
  closest(wanted: string): this | null {
    return wanted.split(", ").some((one) => this.selectors.includes(one)) ? this : null;
  }
}

describe("guardGestures", () => {
  let playing: boolean;
  let released: number;
  let end: () => void;
  /** @returns whether the browser does its own thing. */
  let happens: (kind: string, ...selectors: string[]) => boolean;

  beforeEach(() => {
    playing = true;
    released = 0;
    happens = (kind, ...selectors) => {
      const element = new FakeElement(selectors);
      end = guardGestures(element, {
        playing: () => playing,
        releaseAll: () => {
          released += 1;
        },
      });
      const event = new Event(kind, { cancelable: true });
      element.dispatchEvent(event);
      end();
      return !event.defaultPrevented;
    };
  });

  it.each([
    ["a right click or a long touch on the picture", "contextmenu", ["#stage"], false],
    ["one on a key", "contextmenu", ["#keys"], false],
    ["one on the figures", "contextmenu", [".hud"], true],
    ["one on details that can be copied", "contextmenu", [".sheet", "pre"], true],
    ["dragging the picture", "dragstart", ["#stage"], false],
    ["dragging marked text", "dragstart", ["textarea"], true],
    ["zooming with two fingers while playing", "gesturestart", ["#stage"], false],
  ] as const)("%s", (_, kind, selectors, own) => {
    expect(happens(kind, ...selectors)).toBe(own);
  });

  it("a menu that opens takes the keys: all of them are let go", () => {
    happens("contextmenu", "#stage");
    expect(released).toBe(0);
    happens("contextmenu", ".hud");
    expect(released).toBe(1);
  });

  it("whoever does not play may zoom", () => {
    playing = false;
    expect(happens("gesturestart", ".arriving")).toBe(true);
  });

  it("ends", () => {
    const element = new FakeElement(["#stage"]);
    guardGestures(element, { playing: () => true, releaseAll: () => undefined })();
    const event = new Event("dragstart", { cancelable: true });
    element.dispatchEvent(event);
    expect(event.defaultPrevented).toBe(false);
  });
});
