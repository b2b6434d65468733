import { describe, expect, it } from "vitest";
import { END_STATE } from "../session/life";
import { FACES } from "../session/face";
import { fitOf } from "./fit";
import { nearest } from "./focus";
import { labelOf, placesOf } from "./labels";
import { contrast, ENOUGH, paletteOf } from "./palette";
import { duration, ENDED, etaWords, PILL, slowWords, titleWords, waitWords } from "./words";

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

describe("words of the line", () => {
  it.each<[number | null, string]>([
    [null, ""],
    [20, "less than a minute"],
    [60, "about 1–2 min"],
    [180, "about 2–4 min"],
    [1200, "about 17–23 min"],
  ])("%s s: %s", (seconds, words) => {
    expect(etaWords(seconds)).toBe(words);
  });

  it("say how many come first and how long it may take", () => {
    expect(waitWords({ ahead: 2, etaSeconds: 150 })).toBe("2 ahead of you · about 2–3 min");
    expect(waitWords({ ahead: 0, etaSeconds: null })).toBe("You are next");
  });

  it("are in the title too, for who looks at another tab", () => {
    const line = { ahead: 2, etaSeconds: 150, claimUntilMs: null };
    expect(titleWords("waiting", "The veldt", line)).toBe("2 ahead of you · The veldt");
    expect(titleWords("turn", "The veldt", line)).toBe("Your seat is ready · The veldt");
    expect(titleWords("playing", "The veldt", line)).toBe("The veldt");
  });
});

describe("nearest", () => {
  const box = (left: number, top: number): { left: number; top: number; width: number; height: number } => ({
    left,
    top,
    width: 100,
    height: 50,
  });
  const boxes = [box(200, 0), box(400, 0), box(200, 200), box(420, 210)];

  it("goes to what is next in a direction", () => {
    expect(nearest(box(0, 0), boxes, "right")).toBe(0);
    expect(nearest(box(400, 0), boxes, "left")).toBe(0);
    expect(nearest(box(400, 0), boxes, "down")).toBe(3);
    expect(nearest(box(400, 0), boxes, "right")).toBeNull(); // what lies lower is no way aside
    expect(nearest(box(0, 0), boxes, "left")).toBeNull();
    expect(nearest(box(0, 0), boxes, "up")).toBeNull();
  });
});

describe("paletteOf", () => {
  /** Pictures of a few colours each, as many as there are seeds. */
  function picture(seed: number): number[] {
    let state = seed * 2654435761 + 1;
    const chance = (): number => {
      state = (state * 1103515245 + 12345) % 2 ** 31;
      return state / 2 ** 31;
    };
    const colours = Array.from({ length: 3 }, () => [chance() * 255, chance() * 255, chance() * 255]);
    return Array.from({ length: 64 }, () => [...(colours[Math.floor(chance() * 3)] ?? []), 255]).flat();
  }

  it("can be read whatever the picture is", () => {
    const pictures = [[0, 0, 0, 255], [255, 255, 255, 255], [], ...Array.from({ length: 300 }, (_, seed) => picture(seed))];
    for (const pixels of pictures) {
      const { sand, soft, glass, earth, accent, deep } = paletteOf(pixels);
      for (const ground of [glass, earth]) {
        for (const text of [sand, soft, accent]) {
          expect(contrast(text, ground)).toBeGreaterThanOrEqual(ENOUGH);
        }
      }
      expect(contrast(deep, accent)).toBeGreaterThanOrEqual(ENOUGH);
    }
  });

  it("takes its accent from what glows", () => {
    const two = (ground: number[], glow: number[]): number[] =>
      Array.from({ length: 36 }, (_, index) => [...(index < 30 ? ground : glow), 255]).flat();
    const [red, green, blue] = paletteOf(two([60, 40, 30], [255, 140, 40])).accent;
    expect(red).toBeGreaterThan(green);
    expect(green).toBeGreaterThan(blue);
    const [r, g, b] = paletteOf(two([10, 40, 60], [40, 200, 230])).accent;
    expect(b).toBeGreaterThan(r);
    expect(g).toBeGreaterThan(r);
  });

  it("contrast is that of WCAG", () => {
    expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21);
    expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 2);
  });
});
