import { describe, expect, it } from "vitest";
import { END_STATE } from "../session/life";
import { FACES } from "../session/face";
import { fitOf } from "./fit";
import { labelOf, placesOf } from "./labels";
import { duration, ENDED, PILL, slowWords } from "./words";

describe("fitOf", () => {
  const picture = { width: 256, height: 160 };
  it.each([
    [1280, 800, "cover"], // the same shape
    [1366, 768, "cover"], // crops a tenth
    [1920, 1080, "cover"],
    [2560, 1080, "contain"], // would crop a third
    [320, 568, "contain"],
    [1024, 768, "contain"], // 17 %
  ])("%i × %i: %s", (width, height, fit) => {
    expect(fitOf(picture, { width, height })).toBe(fit);
  });

  it("knows no picture yet", () => {
    expect(fitOf({ width: 0, height: 0 }, { width: 100, height: 100 })).toBe("cover");
  });
});

describe("labels", () => {
  it("are those of this keyboard where it tells", () => {
    expect(labelOf("KeyW")).toBe("W");
    expect(labelOf("KeyW", new Map([["KeyW", "z"]]))).toBe("Z");
    expect(labelOf("ArrowLeft", new Map([["ArrowLeft", "x"]]))).toBe("←");
    expect(labelOf("Digit1")).toBe("1");
  });

  it("every key has a place of its own", () => {
    const codes = ["KeyW", "KeyA", "KeyI", "ArrowUp", "Space", "KeyX"];
    const places = placesOf(codes);
    expect([...places.keys()]).toEqual(codes);
    expect(new Set([...places.values()].map((place) => JSON.stringify(place))).size).toBe(6);
    expect(places.get("ArrowUp")?.cluster).toBe("rest"); // I is there already
  });
});

describe("words", () => {
  it("there are some for every face and every end", () => {
    for (const face of FACES) expect(PILL[face]).not.toBe("");
    for (const reason of Object.keys(END_STATE)) {
      expect(ENDED[reason as keyof typeof ENDED].sentence).toMatch(/^[A-Z].*\.$/);
    }
  });

  it("say which side is slow", () => {
    expect(slowWords({ side: "server", percent: 60, players: 4 })).toBe(
      "The server is at 60 % speed (4 players)",
    );
    expect(slowWords({ side: "page" })).toContain("This computer");
  });

  it("say how long in words", () => {
    expect([0.4, 59, 60, 125].map(duration)).toEqual(["0 s", "59 s", "1 min", "2 min 5 s"]);
  });
});
